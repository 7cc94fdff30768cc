"""Unique keys: the modes that put the new job into the place of the old one, or behind it."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import ExtendItem, Refused
from jobline_server.engine.values import (
    EndReason,
    FailAction,
    LeaseReason,
)
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


class TestReplace:
    @pytest.mark.parametrize("mode", REPLACING)
    def test_a_waiting_job_gives_its_place_to_the_new_one(self, world, mode):
        _, old = one(world, payload=b"old")
        outcome, job_id = one(world, mode, payload=b"new")
        assert outcome is (Out.DEBOUNCED if mode is Mode.DEBOUNCE else Out.REPLACED)
        [(state, record)] = world.ended().values()
        assert (record.id, state, record.reason) == (old, S.CANCELLED, EndReason.REPLACED)
        assert (holder_of(world), world.ids()) == (job_id, [job_id])

    @pytest.mark.parametrize("mode", REPLACING)
    def test_behind_an_active_job_the_new_one_waits_until_that_has_ended(self, world, mode):
        _, running = one(world)
        leased = world.one()
        outcome, behind = one(world, mode)
        assert (outcome, world.state(behind)) == (Out.PARKED, S.BLOCKED)
        assert holder_of(world) == running
        world.ack([(running, leased.delivery)])
        assert (holder_of(world), world.ids()) == (behind, [behind])

    def test_at_most_one_waits_and_the_last_push_wins(self, world):
        one(world)
        leased = world.one()
        parked = [one(world, Mode.AFTER_ACTIVE)[1] for _ in range(3)]
        assert [world.state(job_id) for job_id in parked] == [None, None, S.BLOCKED]
        world.ack([(leased.id, leased.delivery)])
        assert world.ids() == parked[-1:]

    def test_what_frees_a_parked_job_is_on_disk_before_it_is_handed_out(self, world):
        """G3: it carries the offset of the fact that ended the holder."""
        one(world)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        world.ack([(leased.id, leased.delivery)])
        assert world.shard.jobs[behind].offset == world.shard.next_offset - 1
        assert world.shard.jobs[behind].lease_reason is LeaseReason.FIRST

    def test_a_parked_job_with_a_delay_waits_for_its_time_too(self, world):
        one(world)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE, delay_ms=60_000)
        world.ack([(leased.id, leased.delivery)])
        assert world.state(behind) is S.SCHEDULED
        world.tick(60_000)
        assert world.ids() == [behind]

    def test_a_retry_of_the_running_job_does_not_free_the_parked_one(self, world):
        one(world)
        leased = world.one()
        _, behind = one(world, Mode.AFTER_ACTIVE)
        world.fail(leased.id, leased.delivery, retry_after_ms=1_000)
        assert world.state(behind) is S.BLOCKED
        world.tick(1_000)
        leased = world.one()
        world.fail(leased.id, leased.delivery, then=FailAction.DEAD)
        assert world.state(behind) is S.READY

    def test_a_job_that_was_handed_out_once_is_replaced_but_by_after_active(self, world):
        _, first = one(world)
        leased = world.one()
        world.fail(leased.id, leased.delivery, retry_after_ms=60_000)
        outcome, second = one(world, Mode.AFTER_ACTIVE)
        assert (outcome, world.state(second)) == (Out.PARKED, S.BLOCKED)
        outcome, third = one(world, Mode.REPLACE)
        assert outcome is Out.REPLACED
        assert [world.state(job_id) for job_id in (first, second)] == [None, None]
        assert world.ids() == [third]

    def test_jobs_of_one_push_replace_one_another(self, world):
        first, second, third = push(
            world, *[new(Mode.REPLACE, payload=b"%d" % i) for i in (1, 2, 3)]
        )
        assert [first[0], second[0], third[0]] == [Out.CREATED, Out.REPLACED, Out.REPLACED]
        assert world.ids() == [third[1]]

    def test_jobs_of_one_push_behind_a_running_one(self, world):
        one(world)
        leased = world.one()
        first, second = push(world, new(Mode.SUPERSEDE), new(Mode.SUPERSEDE))
        assert [first[0], second[0]] == [Out.PARKED, Out.PARKED]
        world.ack([(leased.id, leased.delivery)])
        assert world.ids() == [second[1]]

    def test_a_replaced_job_leaves_room_in_a_full_queue(self, world):
        one(world)
        world.settings(max_waiting=1)
        assert one(world, Mode.REPLACE)[0] is Out.REPLACED
        with pytest.raises(Refused):
            one(world, key="v")

    def test_a_parked_job_whose_key_is_free_by_time_is_replaced(self, world):
        one(world, ttl_ms=1_000)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        world.tick(1_000)
        outcome, job_id = one(world, Mode.REPLACE)
        assert (outcome, world.state(behind)) == (Out.REPLACED, None)
        assert world.ids() == [job_id]
        world.ack([(leased.id, leased.delivery)])

    def test_the_parked_job_is_next_when_the_time_of_the_holder_is_over(self, world):
        """Otherwise each push with KEEP would take the key before it, for ever."""
        one(world, ttl_ms=1_000)
        leased = world.one()
        _, behind = one(world, Mode.REPLACE)
        world.tick(1_000)
        assert holder_of(world) == behind
        assert push(world, new(), new(Mode.EXTEND, ttl_ms=1)) == [
            (Out.DUPLICATE, behind),
            (Out.EXTENDED, behind),
        ]
        world.ack([(leased.id, leased.delivery)])
        assert world.ids() == [behind]


class TestSupersede:
    def test_the_running_job_is_asked_to_stop_once(self, world):
        _, running = one(world)
        leased = world.one()
        one(world, Mode.SUPERSEDE)
        _, behind = one(world, Mode.SUPERSEDE)
        assert world.shard.jobs[running].cancel_requested
        exceptions = world.extend(ExtendItem(running, leased.delivery))
        assert exceptions[0][1].name == "CANCELLED"
        world.ack([(running, leased.delivery)])
        assert world.ids() == [behind]

    def test_it_runs_also_when_the_worker_of_the_old_one_is_gone(self, world):
        one(world)
        world.one()
        _, behind = one(world, Mode.SUPERSEDE)
        world.tick(40_000)
        assert world.ids() == [behind]


class TestDebounce:
    def test_each_push_begins_the_delay_again(self, world):
        one(world, Mode.DEBOUNCE, delay_ms=2_000)
        world.tick(1_500)
        _, last = one(world, Mode.DEBOUNCE, delay_ms=2_000, at_ms=world.now.wall_ms)
        world.tick(1_500)
        assert world.ids() == []
        world.tick(500)
        assert world.ids() == [last]

    def test_a_series_waits_no_longer_than_max_wait(self, world):
        for _ in range(5):
            now_ms = world.now.wall_ms
            outcome, last = one(
                world, Mode.DEBOUNCE, delay_ms=2_000, at_ms=now_ms, max_wait_ms=5_000
            )
            world.tick(1_000)
        assert outcome is Out.DEBOUNCED
        assert world.ids() == [last]

    def test_a_new_series_begins_when_the_last_one_has_run(self, world):
        one(world, Mode.DEBOUNCE, delay_ms=1_000, max_wait_ms=2_000)
        world.tick(1_000)
        leased = world.one()
        world.tick(5_000)
        now_ms = world.now.wall_ms
        parked = one(world, Mode.DEBOUNCE, delay_ms=1_000, at_ms=now_ms, max_wait_ms=2_000)
        assert parked[0] is Out.PARKED
        world.ack([(leased.id, leased.delivery)])
        assert world.shard.jobs[parked[1]].run_at_ms == now_ms + 1_000
