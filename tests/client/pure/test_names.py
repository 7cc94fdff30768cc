"""What a program finds in `jobline`."""

from __future__ import annotations

import subprocess
import sys

MODULES = {"errors", "v1"}
NAMES = """
import jobline
print(*sorted(name for name in dir(jobline) if not name.startswith("_")))
print(*sorted(name for name in jobline.__all__ if not name.startswith("_")))
"""


def test_the_package_shows_what_is_public_alone():
    """Trial D9: no modules beside the names that a program is to use."""
    run = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True)
    shown, public = (set(line.split()) for line in run.stdout.splitlines())
    assert shown - public == MODULES
    assert public <= shown
