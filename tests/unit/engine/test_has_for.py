"""What a consumer that got nothing says about others: whether they may get any."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.decide import pass_limiters
from jobline_server.engine.decide.lease import has_for, lets_out
from jobline_server.engine.decide.queues import decide_pause_queue, decide_resume_queue
from jobline_server.engine.rules import JobRules
from tests.unit.engine.fair_world import FairWorld
from tests.unit.engine.limiter_world import lot, put
from tests.unit.engine.world import World


def may_have(world: World, *names: str, version: str = "", payload_bytes_max: int = 1_000) -> bool:
    """Whether the queue has jobs for consumers of these names (none: all)."""
    wanted = frozenset(names) or None
    return has_for(world.shard, world.now, world.queue(), wanted, version, payload_bytes_max)


def is_open(world: World) -> bool:
    return lets_out(world.shard, world.now, world.queue())


def test_queue_lets_out_what_is_ready_unless_it_may_not(world: World) -> None:
    """Paused, or at its concurrency."""
    world.row()
    world.row()
    assert is_open(world)
    decide_pause_queue(world.shard, world.now, "q", "", "")
    assert not is_open(world)
    decide_resume_queue(world.shard, world.now, "q")
    world.settings(concurrency=1)
    assert is_open(world)
    world.one()
    assert not is_open(world)


def test_jobs_are_for_those_of_their_name_version_and_size(world: World) -> None:
    """Of whatever room, and asking changes nothing."""
    world.row(b"x" * 20, name="mail")
    assert not may_have(world, "other")
    assert not may_have(world, "mail", payload_bytes_max=19)
    assert may_have(world, "mail", "other")
    assert may_have(world)
    world.ids()
    assert not may_have(world)
    world.row(rules=JobRules(min_worker_version="2", slots=9))
    assert [may_have(world, version=version) for version in ("", "1", "2")] == [False, False, True]
    world.check()


def test_jobs_that_are_not_on_disk_are_for_nobody_yet(world: World) -> None:
    """G3"""
    world.plain(b"x")
    world.shard.committed -= 1
    assert not may_have(world)


def test_others_may_have_what_is_behind_tenants_that_are_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few tenants are examined at once."""
    monkeypatch.setattr(limits, "TENANTS_EXAMINED_MAX", 2)
    world = FairWorld()
    for group in "abc":
        world.change(group, concurrency=1)
    world.jobs(*"aabbcc")
    while world.served():
        pass
    for group in "abc":
        world.fair.reopen(group)
    assert [may_have(world) for _ in range(2)] == [True, False]


def test_others_may_have_what_is_behind_jobs_that_expired(world: World) -> None:
    """Those are ended as they are chosen."""
    world.row(rules=JobRules(ttl_ms=10))
    world.row()
    world.advance(20)
    assert may_have(world)
    assert len(world.ids()) == 1
    assert not may_have(world)


def test_others_may_have_what_is_behind_lanes_that_limiters_close(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few lanes are closed at once."""
    monkeypatch.setattr(pass_limiters, "CHOICES_MAX", 1)
    put(world, most=1)
    lot(world, 2, "api")
    world.ids(1)
    world.row(priority=-1)
    assert may_have(world)
    assert len(world.ids()) == 1
    assert not may_have(world)
