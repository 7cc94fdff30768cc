"""`python -m jobline_server`: the server without the command line. Its flags are the settings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jobline_server.config import ConfigurationError, Settings, load_settings
from jobline_server.serving import EXIT_CANNOT_START, run


def main(arguments: list[str] | None = None) -> int:
    """Reads the settings and runs a server; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jobline_server", description=__doc__)
    parser.add_argument("--config", type=Path, help="Settings file (TOML).")
    for name, field in Settings.model_fields.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, help=field.description)
    flags = vars(parser.parse_args(arguments))
    file = flags.pop("config")
    try:
        settings = load_settings(flags, file)
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CANNOT_START
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
