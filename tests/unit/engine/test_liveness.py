"""Which of many jobs are not live: as `state_of` says of each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.liveness import not_live
from tests.unit.engine.world import World, leases_of

PICKS = st.lists(st.integers(0, 14), max_size=4)


@given(cancelled=PICKS, leased=st.integers(0, 12), acked=PICKS, asked=st.permutations(range(30)))
def test_jobs_that_are_not_live(cancelled, leased, acked, asked):
    """Members of lots that nothing has happened to, that were leased in part and that have holes;
    single jobs; ids that never were, and those of other shards.
    """
    world = World()
    for _ in range(3):
        world.plain(b"a", b"b", b"c", b"d")
        world.row()
    first = world.shard.next_id() - 15
    decide_cancel(world.shard, world.now, [first + at for at in dict.fromkeys(cancelled)])
    leases = leases_of(world.lease(leased)) if leased else []
    world.ack([lease for at, lease in enumerate(leases) if at in acked])
    ids = [first - 5 + at for at in asked] + [5, (world.shard.number + 1) << 43 | 5]
    expected = sorted(one for one in ids if world.shard.state_of(one) is None)
    assert not_live(world.shard, ids) == expected
    assert not_live(world.shard, []) == []
