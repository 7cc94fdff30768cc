"""`python -m jobline_server`: the server without the command line. Its flags are the settings."""

from __future__ import annotations

import sys

from jobline._interrupts import end_quietly


def main() -> int:
    """Runs a server; returns the exit code."""
    end_quietly()
    from jobline_server.memory import stop_collecting  # noqa: PLC0415

    stop_collecting()
    # All that takes time to import.
    from jobline_server.cli.plain import serve  # noqa: PLC0415

    return serve()


if __name__ == "__main__":
    sys.exit(main())
