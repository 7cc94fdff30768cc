"""Keys over a restart: how long a window still is."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.pushed_rows import NewJob, rows_of
from tests.storage.recovery_world import World


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_jump_of_the_wall_clock_forgets_no_key_over_a_restart(world, checkpoint):
    """Trial E10: the time a key has had is known at the restart; what passes meanwhile is what the
    wall clock says.
    """

    def count_again(key: str) -> int:
        rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, key)])
        return decide_push(world.shard, world.now, Push("q", DEFAULT_OPTIONS, rows)).count

    years_ms = 3 * 365 * limits.DAY_MS
    assert count_again("before") == 1
    world.now = world.now._replace(wall_ms=world.now.wall_ms + years_ms)
    assert count_again("after") == 1
    if checkpoint:
        world.finish_checkpoint(truncate=True)
    world.commit()
    world.crash(ops_kept=0)
    world.time_passes(limits.DAY_MS - limits.HOUR_MS)
    assert (count_again("before"), count_again("after")) == (0, 0)
    world.commit()
    # Stopped while its clock goes on: the monotonic one begins anew.
    world.now = world.now._replace(wall_ms=world.now.wall_ms + 2 * limits.HOUR_MS)
    world.crash(ops_kept=0)
    assert (count_again("before"), count_again("after")) == (1, 1)
