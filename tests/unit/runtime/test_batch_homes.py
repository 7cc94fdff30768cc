"""Members whose batch is at home in another shard are counted in the same commit."""

from __future__ import annotations

from pathlib import Path

from jobline_server.engine.batches import BatchSpec
from jobline_server.engine.decide.batches import decide_create_batch
from jobline_server.runtime.batch_homes import join_homes
from jobline_server.runtime.clock import ManualClock
from tests.unit.runtime.conftest import opened


async def test_new_members_are_counted_where_their_batch_is(tmp_path: Path) -> None:
    """One of a shard that is not here is counted nowhere: its push was refused before."""
    async with opened(tmp_path, ManualClock(), shards=2) as runtime:
        core = runtime.core
        home = core.slots[1]
        batch = decide_create_batch(home.shard, core.now(), BatchSpec())
        elsewhere = 7 << 43 | 1
        assert join_homes(core.slots, {batch.id: 3, elsewhere: 1}, core.now()) == [home]
        assert batch.total == 3
