"""Syncs that strace saw: what a server does for the durability of a push, and not what it says.

A count shows that pushes are synced, not that each answer waited for its sync. But one caller
pushes one job at a time, so a server that syncs once a push does so between two answers.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

PUSHES = 200
# What makes written bytes durable. Files opened with O_SYNC are durable by being written.
CALLS = ("fsync", "fdatasync", "sync_file_range", "msync")
_SYNC = re.compile(rf"^(?:\d+ +)?(?:{'|'.join(CALLS)})\(")
_OPEN = re.compile(r"^(?:\d+ +)?openat\(.*\bO_D?SYNC\b")


def words(log: Path) -> list[str]:
    """The words before a command that is to be traced with its children; none without strace."""
    program = shutil.which("strace")
    if program is None:
        return []
    return [program, "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)},openat"]


def count(lines: Sequence[str]) -> int:
    """How many syncs there are in lines of strace: calls, and files opened so that each write of
    them is a sync. A call that another thread interrupted is two lines, and counts once.
    """
    return sum(bool(_SYNC.match(line) or _OPEN.match(line)) for line in lines)


def count_in(log: Path) -> int:
    """The same of a log that is still written."""
    return count(log.read_text(errors="replace").splitlines())
