"""How the process treats its memory: asked of a process of its own, because it cannot be undone."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from jobline_server import memory

CHURN = """
import gc, resource, sys
from jobline_server import memory
if sys.argv[1] == "tuned":
    memory.tune()
    assert gc.get_threshold() == memory.GC_THRESHOLDS
    memory.freeze()
    assert gc.get_freeze_count() > 0
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    bytes(1 << 20) + bytes(1 << 20)
before = faults()
for _ in range(50):
    bytes(1 << 20) + bytes(1 << 20)
print(faults() - before)
"""


def page_faults(how: str) -> int:
    """How often the kernel had to give a page for large blocks that came and went."""
    done = subprocess.run(
        [sys.executable, "-c", CHURN, how], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_large_blocks_leave_their_pages_to_the_next_ones():
    assert page_faults("as it was") > 10_000
    assert page_faults("tuned") < 100


def test_another_c_library_keeps_its_own_ways(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    assert memory.keep_heap() is False
