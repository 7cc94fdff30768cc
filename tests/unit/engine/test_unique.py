"""Unique keys: the modes that keep the job that is there. G6 is the promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobline_server.engine.commands import RefusalKind, Refused, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting
from jobline_server.engine.decide.update import decide_forget_unique_key
from jobline_server.engine.load import Load
from jobline_server.engine.producers import Call
from jobline_server.engine.unique import ThrottleTable, unique_hash
from jobline_server.engine.values import (
    FailAction,
)
from tests.shard_image import image_of
from tests.unit.engine.unique_jobs import (
    Mode,
    Out,
    check_recovery,
    holder_of,
    new,
    one,
    push,
)
from tests.unit.engine.world import World, leases_of


def filed(table: ThrottleTable) -> int:
    """Entries that the sweep comes to."""
    return sum(map(len, table._minutes.values()))


@pytest.fixture(autouse=True)
def _recovers(world: World) -> Any:
    yield
    check_recovery(world)


class TestKeep:
    def test_a_second_job_is_not_stored_while_the_first_is_unfinished(self, world):
        first = one(world)
        assert first[0] is Out.CREATED
        assert one(world) == one(world, Mode.KEEP) == (Out.DUPLICATE, first[1])
        assert world.counts() == (0, 1, 0)

    def test_other_keys_and_other_queues_do_not_matter(self, world):
        assert [one(world)[0], one(world, key="v")[0]] == [Out.CREATED, Out.CREATED]
        assert push(world, new(), queue="p")[0][0] is Out.CREATED

    def test_the_key_is_held_through_retries_and_releases(self, world):
        """A mistake of others: a retry let a second job in."""
        _, job_id = one(world)
        leased = world.one()
        assert one(world) == (Out.DUPLICATE, job_id)
        world.fail(leased.id, leased.delivery, retry_after_ms=1_000)
        assert one(world) == (Out.DUPLICATE, job_id)
        world.tick(1_000)
        leased = world.one()
        world.release(ReleaseItem(leased.id, leased.delivery, delay_ms=500))
        assert one(world) == (Out.DUPLICATE, job_id)

    @pytest.mark.parametrize("end", ["complete", "dead", "cancel", "delete", "settled cancel"])
    def test_the_key_is_free_once_its_job_has_ended(self, world, end):
        _, job_id = one(world)
        if end == "complete":
            world.ack([(job_id, world.one().delivery)])
        elif end == "dead":
            world.fail(job_id, world.one().delivery, then=FailAction.DEAD)
        elif end == "cancel":
            decide_cancel(world.shard, world.now, [job_id])
        elif end == "delete":
            decide_delete_waiting(world.shard, world.now, [job_id])
        else:
            leased = world.one()
            decide_cancel(world.shard, world.now, [job_id])
            world.ack([(job_id, leased.delivery)])
        assert holder_of(world) is None
        assert world.shard.unique.held == 0
        assert one(world)[0] is Out.CREATED

    def test_with_a_ttl_the_key_is_free_after_it_though_the_job_is_unfinished(self, world):
        _, first = one(world, ttl_ms=5_000)
        world.tick(4_999)
        assert one(world) == (Out.DUPLICATE, first)
        world.tick(1)
        outcome, second = one(world)
        assert (outcome, holder_of(world)) == (Out.CREATED, second)
        world.ack([(first, world.one().delivery)])
        assert holder_of(world) == second

    def test_two_jobs_of_one_push_are_as_if_pushed_one_after_the_other(self, world):
        first, second, third = push(world, new(), new(), new(key="v"))
        assert [first[0], third[0]] == [Out.CREATED, Out.CREATED]
        assert second == (Out.DUPLICATE, first[1])
        assert third[1] == first[1] + 1


class TestReject:
    def test_an_atomic_push_is_refused_whole(self, world):
        _, job_id = one(world)
        with pytest.raises(Refused, match=f"job {job_id} holds this unique_key") as refused:
            push(world, new(key="v"), new(Mode.REJECT))
        assert refused.value.kind is RefusalKind.UNIQUE_KEY_HELD
        assert refused.value.field == "jobs[1].options.unique_key"
        assert (world.counts(), holder_of(world, "v")) == ((0, 1, 0), None)

    def test_another_job_of_the_same_push_has_no_id_to_tell(self, world):
        with pytest.raises(Refused, match="another job of this push"):
            push(world, new(), new(Mode.REJECT))

    def test_a_push_that_is_not_atomic_loses_only_that_job(self, world):
        one(world)
        found = push(world, new(Mode.REJECT), new(Mode.REJECT, key="v"), atomic=False)
        assert found[0] == (RefusalKind.UNIQUE_KEY_HELD, 0)
        assert found[1][0] is Out.CREATED

    def test_nothing_is_kept_of_what_is_refused(self, world):
        """However often it comes: no call, no key, no fact."""
        one(world)
        before, load = image_of(world.shard), replace(world.shard.load)
        for number in range(3):
            jobs = [new(Mode.REJECT, job_key=f"k{at}") for at in range(10)]
            call = Call(b"p" * 16, number, 0, 0)
            pushed = world.push(jobs=jobs, atomic=False, calls=(call,))
            assert {outcome for _, outcome, _ in pushed.exceptions} == {RefusalKind.UNIQUE_KEY_HELD}
        assert (image_of(world.shard), world.shard.load) == (before, load)


class TestExtend:
    def test_the_time_of_the_holder_begins_again(self, world):
        _, first = one(world, ttl_ms=5_000)
        world.tick(4_000)
        assert one(world, Mode.EXTEND, ttl_ms=5_000) == (Out.EXTENDED, first)
        world.tick(4_000)
        assert one(world) == (Out.DUPLICATE, first)
        world.tick(1_000)
        assert one(world)[0] is Out.CREATED

    def test_a_throttle_is_extended_also_when_its_job_has_ended(self, world):
        _, first = one(world, Mode.THROTTLE, ttl_ms=5_000)
        world.ack([(first, world.one().delivery)])
        world.tick(4_000)
        assert one(world, Mode.EXTEND, ttl_ms=5_000) == (Out.EXTENDED, first)
        world.tick(4_000)
        assert one(world, Mode.THROTTLE, ttl_ms=1)[0] is Out.THROTTLED

    def test_no_key_is_free_earlier_because_of_it(self, world):
        _, until_ended = one(world)
        _, for_longer = one(world, key="v", ttl_ms=60_000)
        for key in ("u", "v"):
            one(world, Mode.EXTEND, key=key, ttl_ms=1_000)
        world.tick(30_000)
        assert one(world) == (Out.DUPLICATE, until_ended)
        assert one(world, key="v") == (Out.DUPLICATE, for_longer)

    def test_of_two_in_one_push_the_longer_one_counts(self, world):
        _, first = one(world, ttl_ms=1_000)
        push(world, new(Mode.EXTEND, ttl_ms=60_000), new(Mode.EXTEND, ttl_ms=2_000))
        world.tick(30_000)
        assert one(world) == (Out.DUPLICATE, first)

    def test_a_throttle_that_is_over_does_not_begin_again(self, world):
        """It is there until it is swept, and that is nobody's business."""
        _, first = one(world, Mode.THROTTLE, ttl_ms=1_000)
        world.ack([(first, world.one().delivery)])
        world.advance(1_000)
        _, second = one(world)
        one(world, Mode.EXTEND, ttl_ms=60_000)
        world.ack([(second, world.one().delivery)])
        assert one(world)[0] is Out.CREATED

    @pytest.mark.parametrize("mode", [Mode.EXTEND, Mode.THROTTLE])
    def test_without_a_ttl_it_is_refused(self, world, mode):
        with pytest.raises(Refused, match="needs a unique_ttl") as refused:
            one(world, mode)
        assert refused.value.field == "jobs[0].options.unique_ttl"
        assert "q" not in world.shard.queues

    def test_the_queue_may_say_mode_and_ttl(self, world):
        world.settings(unique_mode=Mode.THROTTLE, unique_ttl_ms=60_000)
        _, first = one(world)
        assert one(world) == (Out.THROTTLED, first)
        assert one(world, Mode.KEEP) == (Out.DUPLICATE, first)


class TestThrottle:
    def test_the_key_is_held_for_all_of_its_time(self, world):
        _, first = one(world, Mode.THROTTLE, ttl_ms=60_000)
        world.ack([(first, world.one().delivery)])
        assert one(world, Mode.THROTTLE, ttl_ms=60_000) == (Out.THROTTLED, first)
        assert one(world) == (Out.DUPLICATE, first)
        assert holder_of(world) == first
        world.tick(60_000)
        assert one(world, Mode.THROTTLE, ttl_ms=60_000)[0] is Out.CREATED

    def test_it_does_not_keep_a_replacing_job_out_once_its_job_has_ended(self, world):
        _, first = one(world, Mode.THROTTLE, ttl_ms=60_000)
        world.ack([(first, world.one().delivery)])
        assert one(world, Mode.REPLACE)[0] is Out.CREATED

    def test_keys_of_a_push_are_extended_by_one_fact(self, world):
        """A fact for each took up to 85 ms for a thousand."""
        ids = [one(world, key=str(number), ttl_ms=1_000)[1] for number in range(3)]
        facts = len(world.shard.entries)
        extended = [new(Mode.EXTEND, key=str(number), ttl_ms=9_000) for number in (0, 1, 2, 1)]
        assert push(world, *extended) == [(Out.EXTENDED, ids[number]) for number in (0, 1, 2, 1)]
        assert len(world.shard.entries) <= facts + 1
        world.advance(8_000)
        assert [holder_of(world, str(number)) for number in range(3)] == ids
        check_recovery(world)

    def test_passed_throttles_are_forgotten(self, world):
        one(world, Mode.THROTTLE, ttl_ms=60_000)
        world.ack([(world.one().id, world.shard.first_delivery())])
        assert world.shard.holds_keys()
        world.tick(130_000)
        assert world.shard.load.throttles == len(world.shard.unique.throttled.records) == 0
        assert not world.shard.holds_keys()

    def test_one_that_was_extended_is_not_forgotten_early(self, world):
        one(world, Mode.THROTTLE, ttl_ms=60_000)
        one(world, Mode.EXTEND, ttl_ms=600_000)
        world.tick(130_000)
        assert world.shard.load.throttles == 1

    def test_extending_one_again_and_again_takes_no_room(self, world):
        one(world, Mode.THROTTLE, ttl_ms=60_000)
        table = world.shard.unique.throttled
        for _ in range(5):
            for _ in range(20):
                world.advance(1_000)
                one(world, Mode.EXTEND, ttl_ms=600_000)
            world.tick(60_000)
            assert filed(table) == 1
        world.tick(480_000)
        assert world.shard.load.throttles == 1
        world.tick(190_000)
        assert world.shard.load.throttles == 0
        assert not table.has_any

    def test_nor_does_throttling_one_again_and_again(self, world):
        table = world.shard.unique.throttled
        for ttl_ms in (600_000, 1_000, 300_000, 1_000):
            one(world, Mode.THROTTLE, ttl_ms=1_000)
            world.ack([(world.one().id, world.shard.first_delivery())])
            for _ in range(20):
                world.advance(1_000)
                one(world, Mode.THROTTLE, ttl_ms=1_000)
                world.ack([(world.one().id, world.shard.first_delivery())])
            world.advance(1_000)
            one(world, Mode.THROTTLE, ttl_ms=ttl_ms)
            assert filed(table) == 1
            world.ack([(world.one().id, world.shard.first_delivery())])
            world.tick(ttl_ms + 130_000)
            assert world.shard.load.throttles == 0
            assert not table.has_any

    def test_nor_does_throttling_and_forgetting_keys(self, world):
        """Each round left an entry for the sweep, for as long as the key would have been held."""
        keys = ["a", "b", "c"]
        for number in range(12):
            one(world, Mode.THROTTLE, ttl_ms=86_400_000, key=keys[number % 3])
            one(world, Mode.THROTTLE, ttl_ms=86_400_000 - 60_000 * number, key=str(number))
            for key in (keys[(number + 2) % 3], str(number)) if number > 1 else ():
                decide_forget_unique_key(world.shard, world.now, "q", key)
            world.ack(leases_of(world.lease()))
        table = world.shard.unique.throttled
        assert filed(table) == len(table.records) == world.shard.load.throttles
        for minute, hashes in table._minutes.items():
            places = [(table.records[key].filed, table.records[key].place) for key in hashes]
            assert places == [(minute, place) for place in range(len(hashes))]
        world.tick(2 * 86_400_000)
        assert not table.has_any

    def test_at_the_cap_no_other_key_is_throttled(self):
        world = World(Load(keys_max=1))
        _, first = one(world, Mode.THROTTLE, ttl_ms=60_000)
        with pytest.raises(Refused, match="1 of 1 throttled keys") as refused:
            one(world, Mode.THROTTLE, ttl_ms=60_000, key="v")
        assert refused.value.kind is RefusalKind.KEYS_FULL
        assert one(world, Mode.THROTTLE, ttl_ms=60_000) == (Out.THROTTLED, first)
        assert one(world, key="v")[0] is Out.CREATED

    def test_a_throttle_that_a_checkpoint_holds_is_deleted_there(self, world):
        one(world, Mode.THROTTLE, ttl_ms=1_000)
        table, changes = world.shard.unique.throttled, world.shard.changes.throttles
        key_hash = unique_hash("q", "u")
        first = table.records[key_hash].job_id
        del changes.to_write[first]
        table.records[key_hash].stored = True
        world.advance(1_000)
        one(world, Mode.THROTTLE, ttl_ms=1_000)
        assert changes.to_delete == [first]
        assert dict(changes.to_write) == {table.records[key_hash].job_id: key_hash}
