"""How a checkpoint shares the store with commits."""

from __future__ import annotations

from collections import Counter
from itertools import cycle, islice

import pytest

from jobline_server.engine.limits import SLICE_ITEMS
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.runtime.checkpoint_pace import (
    REST_MAX,
    REST_MIN,
    STOP_SECONDS,
    GivenUp,
    Hurry,
    PassTime,
    Share,
    rest_after,
)
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.checkpoint import OUTRUN_MAX, PASS_SHRINKS, Checkpoint, Progress
from jobline_server.storage.kinds.bundles import JOB_BYTES_MAX
from jobline_server.storage.segments import KeySegments
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World

ROOM = 1_000
# A job with a row of its own.
LARGE = bytes(JOB_BYTES_MAX + 1)


def push_large(world: World, jobs: int) -> None:
    one = NewJob(LARGE, DEFAULT_OPTIONS, run_at_ms=1 << 42)
    for first in range(0, jobs, 1_000):
        world.push(jobs=[one] * min(jobs - first, 1_000))


@pytest.mark.parametrize(
    ("grown", "rests"),
    [
        (0, REST_MAX),
        (ROOM // 2, (3 * REST_MAX + REST_MIN) / 4),
        (ROOM, REST_MIN),
        (100 * ROOM, REST_MIN),
    ],
)
def test_a_checkpoint_hurries_the_more_the_journal_grows(grown: int, rests: float) -> None:
    """In its first pass commits keep most of the store's time, and half of it in any case. It is
    calm at first: most journals have grown little when their checkpoint ends.
    """
    assert rest_after(0.01, grown=grown, room=ROOM) == pytest.approx(rests * 0.01)


def test_a_journal_that_was_cut_meanwhile_is_no_reason_to_rest_longer() -> None:
    """The checkpoint's own end sets the count of bytes back."""
    assert rest_after(0.01, grown=-5 * ROOM, room=ROOM) == pytest.approx(REST_MAX * 0.01)


def test_a_pass_rests_so_long_that_the_next_one_is_smaller() -> None:
    """Half of it was written within a second, in which a quarter of that changed: two thirds of
    what is written may. In all passes alike, within the bounds of a rest.
    """
    for passes in (1, 2, 9):
        half = Progress(passes, taken=100, changed=25)
        rest = rest_after(0.4, grown=0, room=ROOM, progress=half, elapsed=1.0)
        assert rest == pytest.approx(PASS_SHRINKS * 100 / 25 - 1)
    late = Progress(2, taken=100, changed=100)
    assert rest_after(0.01, grown=0, room=ROOM, progress=late, elapsed=1.0) == 0.01 * REST_MAX / 2
    assert rest_after(0.01, grown=ROOM, room=ROOM, progress=late, elapsed=1.0) == 0.01 * REST_MIN
    calm = Progress(2, taken=100, changed=1)
    assert rest_after(0.01, grown=0, room=ROOM, progress=calm, elapsed=1.0) == 0.01 * REST_MAX


def test_a_checkpoint_that_is_outrun_rests_less_and_not_at_all_before_slices_grow() -> None:
    """What a pass takes longer, the next one has more to write."""
    late = [Progress(2, 100, 100, outrun) for outrun in range(OUTRUN_MAX + 1)]
    rests = [rest_after(0.01, grown=0, room=ROOM, progress=one, elapsed=1.0) for one in late]
    assert rests == sorted(set(rests), reverse=True)
    assert rests[-1] == 0


def test_a_checkpoint_writes_as_much_in_each_second_while_the_load_is_steady() -> None:
    """It took most of the disk at its end for what had come while it was slow: commits waited."""
    world, seconds_each, pushed_each = World(), 5e-6, 40e-6
    push_large(world, 20_000)
    checkpoint = Checkpoint(world.shard, KeySegments(1))
    now, owed, pass_time = 0.0, 0.0, PassTime()
    written = Counter[int]()
    while piece := checkpoint.slice():
        progress = checkpoint.progress
        took = len(piece.rows) * seconds_each
        written[int(now / 0.1)] += len(piece.rows)
        grown = ROOM * round(now / pushed_each) // 40_000
        elapsed = pass_time.elapsed(progress, now, now + took)
        took += rest_after(took, grown=grown, room=ROOM, progress=progress, elapsed=elapsed)
        now += took
        owed += took / pushed_each
        push_large(world, int(owed))
        owed -= int(owed)
    assert len(written) > 5
    assert max(written.values()) < 1.5 * sum(written.values()) / len(written)


def test_a_shard_that_changes_fast_does_not_outrun_its_checkpoint() -> None:
    """A fifth of what the store writes changes meanwhile: slices stay about as short as ever."""
    world = World()
    push_large(world, 20_000)
    changed, seconds_each = cycle(world.shard.jobs), 5e-6
    checkpoint = Checkpoint(world.shard, KeySegments(1))
    now, largest, pass_time = 0.0, 0, PassTime()
    while piece := checkpoint.slice():
        largest = max(largest, len(piece.rows))
        took = len(piece.rows) * seconds_each
        progress = checkpoint.progress
        elapsed = pass_time.elapsed(progress, now, now + took)
        took += rest_after(took, grown=0, room=ROOM, progress=progress, elapsed=elapsed)
        now += took
        again = list(islice(changed, int(took / seconds_each / 5)))
        world.shard.changes.jobs.to_write.add_many(again, None)
    assert largest <= 2 * SLICE_ITEMS
    assert len(checkpoint.finish().rows) <= 2 * SLICE_ITEMS


async def test_a_stop_has_time_for_some_writes_and_then_for_none(runtime: Runtime) -> None:
    """From its begin on, however often it is told of that."""
    now, written = [5.0], list[float]()
    hurry = Hurry(lambda: now[0])
    share = Share(runtime.core, ROOM, hurry)

    async def write() -> None:
        written.append(now[0])

    await share.write(write)
    hurry.begin()
    for _ in range(2):
        now[0] += STOP_SECONDS / 2 - 0.1
        await share.write(write)
        hurry.begin()
    assert not hurry.is_over
    now[0] += 0.2
    with pytest.raises(GivenUp):
        await share.write(write)
    assert (hurry.is_over, len(written)) == (True, 3)
