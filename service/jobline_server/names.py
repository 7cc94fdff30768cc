"""Names that are given once."""

from __future__ import annotations

from os import urandom


def new_name() -> str:
    """Returns a unique name, for sessions, operations and incidents."""
    return urandom(8).hex()
