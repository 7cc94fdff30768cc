"""Checks of the pushes of a flow: what may refuse one of them does so before any is stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.flows import FlowChecks, checked, known_part
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState, Now
from tests.unit.engine.world import World


def plain(queue: str = "q", count: int = 1, **fields) -> Push:
    payloads = Payloads.of([b"x"] * count)
    return Push(queue, DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.FSYNCED, **fields)


def rows(*ties: Ties, queue: str = "q", **options) -> Push:
    own = replace(DEFAULT_OPTIONS, **options)
    columns = JobColumns([b"x"] * len(ties), [own] * len(ties), ties=list(ties))
    return Push(queue, DEFAULT_OPTIONS, rows=columns, level=AckLevel.FSYNCED)


def refused(world: World, *commands: Push, children: int = 0) -> Refused:
    """The refusal of the last of these pushes; those before are let in, and nothing is stored."""
    checks = FlowChecks(world.shard.load)
    *good, bad = commands
    for command in good:
        checks.check(world.shard, command, children)
    with pytest.raises(Refused) as refusal:
        checks.check(world.shard, bad, children)
    assert not world.shard.entries
    return refusal.value


def test_pushes_of_a_flow_are_counted_together():
    """Each of them alone would fit."""
    world = World()
    world.settings(max_waiting=3)
    assert refused(world, plain(count=2), plain(count=2)).kind is RefusalKind.QUEUE_FULL
    world = World(Load(waiting_max=3))
    assert refused(world, plain("a", 2), plain("b", 2)).kind is RefusalKind.SERVER_FULL
    world = World(Load(dependencies_max=3))
    full = refused(world, plain(), plain(), children=2)
    assert full.kind is RefusalKind.DEPENDENCIES_FULL
    world = World(Load(requests_max=1))
    named = plain(request_id=b"r")
    assert refused(world, named, named).kind is RefusalKind.REQUEST_IDS_FULL
    world = World()
    world.settings(group=GroupSettings(max_waiting=1))
    group = rows(Ties("g"))
    assert refused(world, group, group).kind is RefusalKind.GROUP_FULL


def test_new_queues_are_counted_together(world, monkeypatch):
    monkeypatch.setattr(limits, "SHARD_QUEUES_MAX", 2)
    full = refused(world, plain("a"), plain("a"), plain("b"), plain("c"))
    assert (full.kind, full.retry_after_ms) == (RefusalKind.SERVER_FULL, 1_000)


def test_what_a_push_alone_is_refused_for(world):
    assert refused(world, rows(Ties("g"), priority=1)).field == "jobs[0].options.priority"
    limited = rows(Ties(), rules=replace(NO_RULES, limiters=("no",)))
    assert refused(world, limited).kind is RefusalKind.LIMITER_NOT_FOUND


def test_a_checked_push_is_never_refused():
    """Whatever others did since the check."""
    world = World(Load(dependencies_max=0, waiting_max=1))
    first = decide_push(world.shard, world.now, checked(plain(count=2), ())).first_id
    parent = checked(rows(Ties("g"), priority=1), [(first, first + 1)])
    made = decide_push(world.shard, world.now, parent, {}).first_id
    world.commit()
    assert world.state(made) is JobState.BLOCKED
    assert world.shard.jobs[made].ties == Ties("g", parents=(first, first + 1))


def test_a_child_that_is_over_counts_by_the_policy_of_its_parent(world):
    parent = rows(Ties())
    parent.rows.ties = []
    parent = checked(parent, [(5,)])
    made = decide_push(world.shard, world.now, parent, {5: JobState.CANCELLED}).first_id
    world.commit()
    assert world.state(made) is None
    world.check()


def test_part_is_known_by_its_request_id(world):
    named = plain(request_id=b"r", request_digest=7)
    assert known_part(world.shard, world.now, plain()) is None
    assert known_part(world.shard, world.now, named) is None
    first = decide_push(world.shard, world.now, named).first_id
    world.commit()
    record = known_part(world.shard, world.now, named)
    assert record is not None
    assert (record.first_id, record.count) == (first, 1)
    with pytest.raises(Refused) as other:
        known_part(world.shard, world.now, replace(named, request_digest=8))
    assert (other.value.kind, other.value.field) == (
        RefusalKind.IDEMPOTENCY_MISMATCH,
        "request_id",
    )
    later = Now(world.now.wall_ms, world.now.mono_ms + limits.REQUEST_WINDOW_MS * 3)
    assert known_part(world.shard, later, named) is None


def test_children_that_a_job_gets_besides_are_counted_with_the_others(world):
    checks = FlowChecks(Load(dependencies_max=3))
    checks.check(world.shard, plain(), 1)
    checks.check_children(2)
    with pytest.raises(Refused) as full:
        checks.check_children(1)
    assert full.value.kind is RefusalKind.DEPENDENCIES_FULL
