"""Whose turn it is, and how much each gets."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.dispatch.rings import ConsumerRings, shares
from jobline_server.engine.commands import Leased
from jobline_server.engine.holder import Holder, InFlight
from jobline_server.engine.shard import Shard


@dataclass(eq=False)
class Taker:
    """A consumer with as much room as a test gives it."""

    name: str
    jobs: int = 1
    names: frozenset[str] | None = None
    queues: tuple[tuple[str, int], ...] = (("mail", 1),)
    in_flight: InFlight = field(default_factory=InFlight)
    looked_at: int = 0
    payload_bytes_max: int = 1_000
    lease_ms: int = 0

    def room(self) -> tuple[int, int]:
        self.looked_at += 1
        return self.jobs, 1_000

    def names_for(self, _queue: str) -> frozenset[str] | None:
        return self.names

    def holder_on(self, _shard: Shard) -> Holder:
        raise NotImplementedError  # rings give out nothing

    def take(self, _leased: Leased) -> None:
        raise NotImplementedError


def waiting(*takers: Taker) -> ConsumerRings[Taker]:
    turns: ConsumerRings[Taker] = ConsumerRings()
    for taker in takers:
        turns.join(taker)
    return turns


def first_of(turns: ConsumerRings[Taker]) -> str:
    return next(iter(turns.round("mail"))).name


def test_each_one_served_moves_behind_the_others() -> None:
    """Nobody is served twice while another with room waits."""
    turns = waiting(Taker("a"), Taker("b"), Taker("c"))
    assert [first_of(turns) for _ in range(4)] == ["a", "b", "c", "a"]


def test_one_without_room_keeps_nobody_back() -> None:
    """A full window is passed over, and the others still take turns."""
    turns = waiting(Taker("full", jobs=0), Taker("b"), Taker("c"))
    assert [first_of(turns) for _ in range(4)] == ["b", "c", "b", "c"]


def test_one_that_left_is_not_served() -> None:
    """Leaving twice does nothing."""
    gone, stays = Taker("gone"), Taker("stays")
    turns = waiting(gone, stays)
    turns.leave(gone)
    turns.leave(gone)
    assert [taker.name for taker in turns.round("mail")] == ["stays"]
    assert turns.consumers("mail") == (stays,)


def test_one_without_room_is_looked_at_once_and_not_each_time() -> None:
    """Trial C5: a thousand full windows cost a commit nothing."""
    full = [Taker(f"full {number}", jobs=0) for number in range(1_000)]
    turns = waiting(*full)
    for _ in range(100):
        assert turns.share_of("mail", 10) == 0
        assert list(turns.round("mail")) == []
    assert {taker.looked_at for taker in full} == {1}
    assert len(turns.consumers("mail")) == 1_000


def test_one_that_has_room_again_stands_behind_the_others() -> None:
    """Trial C5: because something of it was settled, or because it said so; once in each ring."""
    two = (("mail", 1), ("news", 1))
    full, other = Taker("full", jobs=0, queues=two), Taker("other", queues=two)
    turns = waiting(full, other)
    for settled in (True, False):
        full.jobs = 0
        assert [first_of(turns) for _ in range(2)] == ["other", "other"]
        full.jobs = 1
        assert first_of(turns) == "other"
        full.in_flight.settle(0, 0) if settled else turns.wake(full)
        turns.wake(full)
        assert [first_of(turns) for _ in range(3)] == ["other", "full", "other"]
        assert [taker.name for taker in turns.round("news")] == ["full", "other"]
    assert full.in_flight.freed is None


def test_one_that_leaves_while_it_is_full_does_not_come_back() -> None:
    """Trial C5: what is settled later wakes nobody."""
    full, other = Taker("full", jobs=0), Taker("other")
    turns = waiting(full, other)
    assert turns.share_of("mail", 9) == 9
    turns.leave(full)
    turns.leave(other)
    full.in_flight.settle(0, 0)
    assert turns.consumers("mail") == ()
    assert list(turns.round("mail")) == []


def test_a_queue_nobody_waits_at_has_no_turns() -> None:
    """Neither a round nor a share."""
    turns = waiting()
    assert list(turns.round("mail")) == []
    assert turns.share_of("mail", 10) == 0


def test_shares_are_equal_and_at_least_one() -> None:
    """A backlog is cut over those with room."""
    turns = waiting(Taker("a"), Taker("full", jobs=0), Taker("b"))
    assert turns.share_of("mail", 10) == 5
    assert turns.share_of("mail", 11) == 6
    assert turns.share_of("mail", 1) == 1


def test_a_name_is_handled_by_whoever_takes_any_or_names_it() -> None:
    """What nobody handles can be told from what nobody has room for."""
    turns = waiting(Taker("a", names=frozenset({"welcome"})))
    assert turns.handles("mail", "welcome")
    assert not turns.handles("mail", "bye")
    turns.join(Taker("any"))
    assert turns.handles("mail", "bye")


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=10), st.integers(1, 10_000))
def test_room_is_cut_by_weight_and_nothing_is_left_over(weights: list[int], room: int) -> None:
    """The first pass gives each queue its part, the second whatever is left."""
    queues = tuple((f"q{index}", weight) for index, weight in enumerate(weights))
    cut = list(shares(queues, room))
    assert cut[-len(queues) :] == [(queue, room) for queue, _ in queues]
    for (queue, weight), (named, most) in zip(queues, cut, strict=False):
        assert named == queue
        if len(queues) > 1:
            assert most == max(room * weight // sum(weights), 1)
