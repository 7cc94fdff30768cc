"""How a checkpoint shares the store with commits."""

from __future__ import annotations

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
    Share,
    rest_after,
)
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.checkpoint import PASSES_ALIKE, Checkpoint
from jobline_server.storage.kinds.bundles import JOB_BYTES_MAX
from jobline_server.storage.segments import KeySegments
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World

ROOM = 1_000
# A job with a row of its own.
LARGE = bytes(JOB_BYTES_MAX + 1)


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


def test_each_pass_rests_less_and_the_last_before_slices_grow_not_at_all() -> None:
    """What a pass takes longer, the next one has more to write."""
    passes = range(1, PASSES_ALIKE + 1)
    rests = [rest_after(0.01, grown=0, room=ROOM, passes=count) for count in passes]
    assert rests == sorted(set(rests), reverse=True)
    assert rests[-1] == 0


def test_a_shard_that_changes_fast_does_not_outrun_its_checkpoint() -> None:
    """A fifth of what the store writes changes meanwhile: slices stay about as short as ever."""
    world, jobs = World(), 20_000
    for _ in range(jobs // 1_000):
        world.push(jobs=[NewJob(LARGE, DEFAULT_OPTIONS, run_at_ms=1 << 42)] * 1_000)
    changed, seconds_each = cycle(world.shard.jobs), 5e-6
    checkpoint = Checkpoint(world.shard, KeySegments(1))
    largest = 0
    while piece := checkpoint.slice():
        largest = max(largest, len(piece.rows))
        took = len(piece.rows) * seconds_each
        took += rest_after(took, grown=0, room=ROOM, passes=checkpoint.passes)
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

    await share.write(write, passes=PASSES_ALIKE)
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
