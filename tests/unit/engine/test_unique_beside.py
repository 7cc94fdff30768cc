"""Unique keys beside job keys, retries, queues that go, and calls that come again."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import Push, RefusalKind, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.unique import unique_hash
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    FailAction,
)
from tests.pushed_rows import rows_of
from tests.unit.engine.unique_jobs import (
    REPLACING,
    Mode,
    Out,
    S,
    check_recovery,
    holder_of,
    new,
    one,
    push,
)
from tests.unit.engine.world import World


@pytest.fixture(autouse=True)
def _recovers(world: World) -> Any:
    yield
    check_recovery(world)


class TestWithOtherThings:
    def test_a_known_job_key_is_found_first(self, world):
        """G6: a repeat is a repeat, whatever has happened to the unique key."""
        _, first = one(world, job_key="k")
        assert one(world, Mode.REPLACE, job_key="k") == (Out.DUPLICATE, first)
        assert world.state(first) is S.READY

    def test_a_job_key_is_not_known_by_a_job_that_was_not_stored(self, world):
        _, first = one(world)
        leased = world.one()
        assert one(world, job_key="k") == (Out.DUPLICATE, first)
        world.ack([(first, leased.delivery)])
        assert one(world, job_key="k")[0] is Out.CREATED

    def test_jobs_with_a_unique_key_are_always_written(self, world):
        pushed = world.push(jobs=[new()], level=AckLevel.MEMORY)
        assert pushed.level is AckLevel.BUFFERED
        assert not world.shard.jobs[pushed.first_id].volatile

    def test_a_retry_whose_key_is_held_now_is_skipped(self, world):
        _, first = one(world)
        world.fail(first, world.one().delivery, then=FailAction.DEAD)
        (state, record) = world.ended()[first]
        _, second = one(world)
        assert decide_retry(world.shard, world.now, [(record, state)]) == [first]
        world.ack([(second, world.one().delivery)])
        assert decide_retry(world.shard, world.now, [(record, state)]) == []
        assert holder_of(world) == first
        assert one(world) == (Out.DUPLICATE, first)

    def test_of_two_retries_with_one_key_the_first_wins(self, world):
        ended = []
        for _ in range(2):
            _, job_id = one(world)
            world.fail(job_id, world.one().delivery, then=FailAction.DEAD)
            state, record = world.ended()[job_id]
            ended.append((record, state))
        assert decide_retry(world.shard, world.now, ended) == [ended[1][0].id]

    def test_a_retry_under_its_own_throttle_is_done_and_under_another_one_not(self, world):
        ended = []
        for _ in range(2):
            _, job_id = one(world, Mode.THROTTLE, ttl_ms=60_000)
            world.fail(job_id, world.one().delivery, then=FailAction.DEAD)
            state, record = world.ended()[job_id]
            ended.append((record, state))
            world.advance(40_000 if len(ended) > 1 else 60_000)
        assert decide_retry(world.shard, world.now, ended) == [ended[0][0].id]

    def test_a_queue_goes_with_its_keys(self, world):
        one(world)
        world.one()
        one(world, Mode.REPLACE)
        decide_delete_queue(world.shard, world.now, "q", force=True)
        unique = world.shard.unique
        assert (unique.held, len(unique.holders), len(unique.parked)) == (0, 0, 0)

    def test_holder_and_parked_job_may_end_together(self, world):
        one(world)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        world.release(ReleaseItem(leased.id, leased.delivery))
        decide_cancel(world.shard, world.now, [leased.id, behind])
        assert world.shard.unique.held == 0

    def test_a_parked_job_may_be_cancelled_alone(self, world):
        one(world)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        decide_cancel(world.shard, world.now, [behind])
        world.ack([(leased.id, leased.delivery)])
        assert world.shard.unique.held == 0

    def test_when_all_has_drained_no_key_is_held(self, world):
        """Keys of every mode and both endings; nothing is left but throttles, until their time."""
        for mode in Mode:
            push(world, new(mode, key=mode.name, ttl_ms=90_000), new(key=mode.name, ttl_ms=90_000))
        held = world.lease()
        for mode in REPLACING:
            one(world, mode, key=mode.name)
        while held.jobs:
            world.ack([(job.id, job.delivery) for job in held.jobs])
            held = world.lease()
        unique = world.shard.unique
        assert (unique.held, len(unique.holders), len(unique.parked)) == (0, 0, 0)
        assert list(unique.throttled.records) == [unique_hash("q", "THROTTLE")]
        world.tick(180_000)
        assert len(unique.throttled.records) == 0

    def test_a_call_that_comes_again_is_told_the_same_ids(self, world):
        """A lost reply: which jobs were stored is known, also when they have ended since."""
        _, other = one(world, key="w")
        rows = rows_of([new(key="w"), new(key="v"), new(key="w", job_key=""), new()])
        command = Push("q", DEFAULT_OPTIONS, rows, request_id=b"r")
        first = decide_push(world.shard, world.now, command)
        assert first.exceptions == [(0, Out.DUPLICATE, other), (2, Out.DUPLICATE, other)]
        world.commit()
        decide_cancel(world.shard, world.now, [first.first_id, first.first_id + 1])
        assert decide_push(world.shard, world.now, command) == first
        decide_cancel(world.shard, world.now, [other])
        again = decide_push(world.shard, world.now, command)
        assert again.exceptions == [(0, Out.DUPLICATE, 0), (2, Out.DUPLICATE, 0)]

    def test_a_repeated_call_finds_its_job_keys_too(self, world):
        _, known = one(world, key="a", job_key="k")
        one(world, key="w")
        rows = rows_of([new(key="b", job_key="k"), new(key="w"), new(key="c")])
        command = Push("q", DEFAULT_OPTIONS, rows, request_id=b"r")
        first = decide_push(world.shard, world.now, command)
        assert first.exceptions[0] == (0, Out.DUPLICATE, known)
        world.commit()
        assert decide_push(world.shard, world.now, command) == first

    def test_a_repeated_call_is_told_what_its_modes_say(self, world):
        _, holder = one(world)
        kept = [new(Mode.EXTEND, ttl_ms=1_000), new(Mode.THROTTLE, ttl_ms=1_000), new(Mode.REJECT)]
        command = Push(
            "q", DEFAULT_OPTIONS, rows_of([*kept, new(key="v")]), atomic=False, request_id=b"r"
        )
        first = decide_push(world.shard, world.now, command)
        assert first.exceptions == [
            (0, Out.EXTENDED, holder),
            (1, Out.THROTTLED, holder),
            (2, RefusalKind.UNIQUE_KEY_HELD, 0),
        ]
        world.commit()
        assert decide_push(world.shard, world.now, command) == first

    def test_rows_without_a_key_among_others(self, world):
        found = push(world, new(key=""), new(), new(key=""), new())
        assert [outcome for outcome, _ in found] == [*[Out.CREATED] * 3, Out.DUPLICATE]
