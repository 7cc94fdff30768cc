"""The memory settings of the process, tested in other processes, as they cannot be undone."""

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
    assert not gc.isenabled(), "recovery makes no cycles"
    memory.freeze()
    assert gc.isenabled()
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
    """Returns how often the kernel provided a page for large, short-lived blocks."""
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


RING = """
import gc
from jobline_server import memory
memory.tune()
now = 100.0
collector = memory.CycleCollector(lambda: now)
collector.collect_if_due()
kept = [[] for _ in range(5_000)]
ring = []
ring.append(ring)
del ring
gc.set_debug(gc.DEBUG_SAVEALL)
now += 0.9 * memory.COLLECT_SECONDS
collector.collect_if_due()
print(len(gc.garbage), gc.get_count()[0])
now += 0.2 * memory.COLLECT_SECONDS
collector.collect_if_due()
print(len(gc.garbage), gc.get_count()[0], sum(each is kept for each in gc.get_objects(2)))
"""


def test_a_collection_finds_new_cycles_when_it_is_due():
    """Visited objects are old, and are not visited again."""
    done = subprocess.run(
        [sys.executable, "-c", RING], capture_output=True, text=True, check=True, timeout=60
    )
    found_early, young_before, found, young_after, old = map(int, done.stdout.split())
    assert (found_early, found) == (0, 1)
    assert young_before > 4_000
    assert young_after < 100
    assert old == 1


GROWTH = """
import gc
from jobline_server import memory
memory.tune()
memory.GROWN_MAX = 20_000
full = []
gc.callbacks.append(lambda phase, info: full.append(info["generation"]))
now = 0.0
collector = memory.CycleCollector(lambda: now)
kept = []
for _ in range(30):
    kept.append([[] for _ in range(1_000)])
    now += memory.COLLECT_SECONDS
    collector.collect_if_due()
print(full.count(2) // 2, full.count(1) // 2)
"""


def test_all_objects_are_visited_when_many_were_made():
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["1", "29"]


LEAVE = """
import gc
from jobline_server import memory
memory.tune()
kept = [[] for _ in range(100_000)]
memory.skip_last_collection()
print(sum(len(gc.get_objects(generation)) for generation in range(3)))
"""


def test_a_process_that_ends_visits_nothing_once_more():
    """A million jobs took three seconds after the last line of the log."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVE], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 1_000
