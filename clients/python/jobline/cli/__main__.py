"""`python -m jobline.cli` is the command `jobline`."""

from __future__ import annotations

from jobline.cli import main

if __name__ == "__main__":
    main()
