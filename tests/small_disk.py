"""Small file systems of their own, which are soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def mounted(disk: Path, mebibytes: int) -> Iterator[Path]:
    """Mounts a tmpfs of that size on a new directory; skips the test where that cannot be done."""
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root and a kernel that allows it")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def resize(disk: Path, mebibytes: int) -> None:
    """Gives a mounted one another size."""
    subprocess.run(["mount", "-o", f"remount,size={mebibytes}m", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Somebody else takes all the room that is left."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"\0" * 65_536):
            pass
    return filler
