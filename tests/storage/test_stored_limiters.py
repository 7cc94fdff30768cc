"""What a checkpoint keeps of limiters comes back."""

from __future__ import annotations

from hypothesis import given

from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
)
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.rates import RateLimit
from jobline_server.storage.kinds.limiters import decode_limiter, encode_limiter
from tests.storage import value_strategies as own
from tests.storage.recovery_world import World


@given(own.limiters)
def test_limiter_comes_back(limiter: LimiterSettings) -> None:
    assert decode_limiter(encode_limiter(limiter)) == limiter


def test_checkpoint_has_the_limiters_that_are_there() -> None:
    """One that was deleted goes with the next checkpoint; ids are not used twice."""
    world = World()
    for name in ("api", "disk", "gone"):
        decide_put_limiter(world.shard, world.now, name, RateLimit(2), 3)
    world.commit()
    world.finish_checkpoint(truncate=True)
    decide_delete_limiter(world.shard, world.now, "gone")
    decide_empty_limiter(world.shard, world.now, "api", world.now.wall_ms + 9_000, "ann", "429")
    world.commit()
    for truncate in (False, True):
        before, next_id = dict(world.shard.own_limiters), world.shard.next_id()
        world.recover()
        assert world.shard.own_limiters == before
        assert world.shard.limiters.find("disk") is not None
        assert world.shard.limiters.find("gone") is None
        assert world.shard.next_id() >= next_id
        world.finish_checkpoint(truncate=truncate)
