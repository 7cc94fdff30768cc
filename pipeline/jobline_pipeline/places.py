"""Which paths can be looked at from this process."""

from __future__ import annotations

import os


def is_elsewhere(path: str) -> bool:
    """Returns whether only Spark can tell what is at a path: a URL, or any path of a server of
    Spark Connect.
    """
    return "://" in path or "SPARK_REMOTE" in os.environ
