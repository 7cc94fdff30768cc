"""How many random histories the machines try: a fixed few in every test run, or as many new ones
as `make model EXAMPLES=5000` asks for.
"""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "0"))
