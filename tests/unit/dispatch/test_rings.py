"""Which consumer is next, and how many jobs each gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.dispatch.consumer import has_room
from jobline_server.dispatch.rings import ConsumerRings, shares
from jobline_server.engine.commands import Leased
from jobline_server.engine.holder import Holder, InFlight
from jobline_server.engine.shard import Shard


@dataclass(eq=False)
class FakeConsumer:
    """A consumer whose room a test sets."""

    name: str
    jobs: int = 1
    payload_bytes: int = 1_000
    names: frozenset[str] | None = None
    queues: tuple[tuple[str, int], ...] = (("mail", 1),)
    in_flight: InFlight = field(default_factory=InFlight)
    asked: int = 0
    payload_bytes_max: int = 1_000
    lease_ms: int = 0
    version: str = ""
    session_id: str = ""
    held_back: list[Any] = field(default_factory=list)

    def room(self) -> tuple[int, int]:
        self.asked += 1
        return self.jobs, self.payload_bytes

    def names_for(self, _queue: str) -> frozenset[str] | None:
        return self.names

    def holder_on(self, _shard: Shard) -> Holder:
        raise NotImplementedError  # rings give out nothing

    def take(self, _leased: Leased) -> None:
        raise NotImplementedError


def waiting(*consumers: FakeConsumer) -> ConsumerRings[FakeConsumer]:
    rings: ConsumerRings[FakeConsumer] = ConsumerRings()
    for consumer in consumers:
        rings.join(consumer)
    return rings


def first_of(rings: ConsumerRings[FakeConsumer]) -> str:
    return next(iter(rings.round("mail")))[0].name


def test_owner_of_a_session_is_found_where_it_waits() -> None:
    """And only the newest consumer of the session."""
    earlier, later = FakeConsumer("a", session_id="s"), FakeConsumer("b", session_id="s")
    rings = waiting(earlier, FakeConsumer("c"))
    assert rings.owner("mail", "s") is earlier
    assert rings.owner("other", "s") is rings.owner("mail", "t") is None
    rings.join(later)
    rings.leave(earlier)
    assert rings.owner("mail", "s") is later
    rings.leave(later)
    assert rings.owner("mail", "s") is None


def test_each_one_served_moves_behind_the_others() -> None:
    """No consumer is served twice while another with room waits."""
    rings = waiting(FakeConsumer("a"), FakeConsumer("b"), FakeConsumer("c"))
    assert [first_of(rings) for _ in range(4)] == ["a", "b", "c", "a"]


def test_one_without_room_keeps_nobody_back() -> None:
    """A full window is passed over, and the others still take turns."""
    rings = waiting(FakeConsumer("full", jobs=0), FakeConsumer("b"), FakeConsumer("c"))
    assert [first_of(rings) for _ in range(4)] == ["b", "c", "b", "c"]


def test_one_that_left_is_not_served() -> None:
    """Leaving twice does nothing."""
    gone, stays = FakeConsumer("gone"), FakeConsumer("stays")
    rings = waiting(gone, stays)
    rings.leave(gone)
    rings.leave(gone)
    assert [consumer.name for consumer, _ in rings.round("mail")] == ["stays"]
    assert rings.consumers("mail") == (stays,)


def test_one_without_room_is_asked_once_and_not_each_time() -> None:
    """Trial C5: a thousand full windows cost a commit nothing."""
    full = [FakeConsumer(f"full {number}", jobs=0) for number in range(1_000)]
    rings = waiting(*full)
    for _ in range(100):
        assert rings.share_of("mail", 10) == 0
        assert list(rings.round("mail")) == []
    assert {consumer.asked for consumer in full} == {1}
    assert len(rings.consumers("mail")) == 1_000


def test_one_that_has_room_again_stands_behind_the_others() -> None:
    """Trial C5: after a settle, or after `wake`; once in each ring."""
    two = (("mail", 1), ("news", 1))
    full, other = FakeConsumer("full", jobs=0, queues=two), FakeConsumer("other", queues=two)
    rings = waiting(full, other)
    for settled in (True, False):
        full.jobs = 0
        assert [first_of(rings) for _ in range(2)] == ["other", "other"]
        full.jobs = 1
        assert first_of(rings) == "other"
        full.in_flight.settle(0, 0) if settled else rings.wake(full)
        rings.wake(full)
        assert [first_of(rings) for _ in range(3)] == ["other", "full", "other"]
        assert [consumer.name for consumer, _ in rings.round("news")] == ["full", "other"]
    assert full.in_flight.freed is None


def test_one_that_leaves_while_it_is_full_does_not_come_back() -> None:
    """Trial C5: a later settle does not wake it."""
    full, other = FakeConsumer("full", jobs=0), FakeConsumer("other")
    rings = waiting(full, other)
    assert rings.share_of("mail", 9) == 9
    rings.leave(full)
    rings.leave(other)
    full.in_flight.settle(0, 0)
    assert rings.consumers("mail") == ()
    assert list(rings.round("mail")) == []


def test_a_queue_nobody_waits_at_has_no_ring() -> None:
    """Neither a round nor a share."""
    rings = waiting()
    assert list(rings.round("mail")) == []
    assert rings.share_of("mail", 10) == 0


def test_shares_are_equal_and_at_least_one() -> None:
    """A backlog is cut over those with room."""
    rings = waiting(FakeConsumer("a"), FakeConsumer("full", jobs=0), FakeConsumer("b"))
    assert rings.share_of("mail", 10) == 5
    assert rings.share_of("mail", 11) == 6
    assert rings.share_of("mail", 1) == 1


def test_a_name_is_handled_by_whoever_takes_any_or_names_it() -> None:
    """A name that no consumer handles differs from one that none has room for."""
    rings = waiting(FakeConsumer("a", names=frozenset({"welcome"})))
    assert rings.handles("mail", "welcome")
    assert not rings.handles("mail", "bye")
    rings.join(FakeConsumer("any"))
    assert rings.handles("mail", "bye")


def test_names_are_those_of_all_that_wait_there() -> None:
    """Of another queue none; and any name at all as soon as one takes any."""
    rings = waiting(
        FakeConsumer("a", names=frozenset({"welcome"})),
        FakeConsumer("b", names=frozenset({"bye", "welcome"})),
    )
    assert rings.names("mail") == frozenset({"welcome", "bye"})
    assert rings.names("other") == frozenset()
    rings.join(FakeConsumer("any"))
    assert rings.names("mail") is None


def test_queues_are_those_at_which_somebody_waits() -> None:
    """With room or without."""
    full = FakeConsumer("full", jobs=0, queues=(("mail", 1), ("news", 1)))
    rings = waiting(full, FakeConsumer("other"))
    assert rings.share_of("news", 1) == 0
    assert rings.queues() == ["mail", "news"]
    rings.leave(full)
    assert rings.queues() == ["mail"]


def test_room_is_a_place_and_a_byte() -> None:
    """One of them alone takes no job."""
    assert has_room(FakeConsumer("a"))
    assert not has_room(FakeConsumer("full", jobs=0))
    assert not has_room(FakeConsumer("no bytes", payload_bytes=0))


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=10), st.integers(1, 10_000))
def test_room_is_cut_by_weight_and_nothing_is_left_over(weights: list[int], room: int) -> None:
    """The first pass gives each queue its part, the second the rest."""
    queues = tuple((f"q{index}", weight) for index, weight in enumerate(weights))
    cut = list(shares(queues, room))
    assert cut[-len(queues) :] == [(queue, room) for queue, _ in queues]
    for (queue, weight), (named, limit) in zip(queues, cut, strict=False):
        assert named == queue
        if len(queues) > 1:
            assert limit == max(room * weight // sum(weights), 1)


def test_a_round_ends_when_nobody_is_left() -> None:
    """Who is served may take all others along."""
    takers = FakeConsumer("a"), FakeConsumer("b")
    turns = waiting(*takers)
    served = []
    for taker, _ in turns.round("mail"):
        served.append(taker.name)
        for one in takers:
            turns.leave(one)
    assert served == ["a"]
