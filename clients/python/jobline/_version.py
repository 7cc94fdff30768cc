"""Which version of the client this is."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("jobline")
except metadata.PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0.0.0"
