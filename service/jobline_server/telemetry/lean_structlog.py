"""structlog, imported without rich.

structlog imports rich wherever it is installed, for tracebacks that this server never prints: 5 MiB
and a tenth of the time that a start takes.
"""

from __future__ import annotations

import sys

if "rich" in sys.modules:
    import structlog
else:
    # While a module is None, importing it fails.
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog
    finally:
        del sys.modules["rich"]

__all__ = ["structlog"]
