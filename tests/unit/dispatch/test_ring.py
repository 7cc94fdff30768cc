"""Rounds of a ring leave out whole kinds of consumers, and everybody keeps their turn."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.dispatch import ring
from jobline_server.dispatch.consumer import Kind, kind_of
from tests.unit.dispatch.test_rings import FakeConsumer, first_of, waiting

LETTERS, PARCELS = frozenset({"letter"}), frozenset({"parcel"})


def of_kind(names: frozenset[str], *called: str) -> list[FakeConsumer]:
    return [FakeConsumer(name, names=names) for name in called]


def in_turn(consumers: Sequence[FakeConsumer], *, missing: frozenset[str] | None) -> list[str]:
    """The names of those that are asked in a round in which consumers of one kind miss."""
    rings, missed, asked = waiting(*consumers), set[Kind](), []
    for consumer, _ in rings.round("mail", missed):
        asked.append(consumer.name)
        if consumer.names == missing:
            missed.add(kind_of(consumer, "mail"))
    return asked


def test_a_kind_that_missed_is_left_out() -> None:
    """However many are of it; the others are asked in their order."""
    a, b, *rest = of_kind(LETTERS, "a", "b", *(f"l{number}" for number in range(1_000)))
    y, z = of_kind(PARCELS, "y", "z")
    assert in_turn([a, y, b, z, *rest], missing=LETTERS) == ["a", "y", "z"]
    assert not any(consumer.asked for consumer in rest)
    assert in_turn([a, y, b, z], missing=PARCELS) == ["a", "y", "b"]


def test_kinds_differ_in_names_version_and_the_size_of_payloads() -> None:
    """Whoever may have other jobs is asked."""
    usual, again = FakeConsumer("usual"), FakeConsumer("again")
    newer, wider = FakeConsumer("newer", version="2"), FakeConsumer("wider", payload_bytes_max=9)
    named = FakeConsumer("named", names=LETTERS)
    asked = in_turn([usual, newer, wider, named, again], missing=None)
    assert asked == ["usual", "newer", "wider", "named"]


def test_one_that_missed_keeps_its_turn() -> None:
    """It was not served, and neither were those that were left out."""
    rings = waiting(*of_kind(LETTERS, "a", "b"), *of_kind(PARCELS, "y", "z"))
    missed: set[Kind] = set()
    for consumer, _ in rings.round("mail", missed):
        missed.add(kind_of(consumer, "mail"))
    assert [first_of(rings) for _ in range(5)] == ["a", "b", "y", "z", "a"]


def test_one_that_leaves_as_it_misses_does_not_come_back() -> None:
    rings = waiting(*of_kind(LETTERS, "a", "b"))
    missed: set[Kind] = set()
    for consumer, _ in rings.round("mail", missed):
        missed.add(kind_of(consumer, "mail"))
        rings.leave(consumer)
    assert [consumer.name for consumer in rings.consumers("mail")] == ["b"]
    assert [first_of(rings) for _ in range(2)] == ["b", "b"]


def test_kinds_that_come_and_go_leave_nothing_behind() -> None:
    """A queue at which pulls of many kinds wait, and that has no jobs for any of them."""
    stays = FakeConsumer("stays")
    rings = waiting(stays)
    for number in range(10 * ring.FIRSTS_SPARE):
        guest = FakeConsumer("guest", names=frozenset({str(number)}))
        rings.join(guest)
        rings.leave(guest)
    kept = rings._rings["mail"]
    assert len(kept._firsts) <= ring.FIRSTS_SPARE + 2
    assert first_of(rings) == "stays"


Moves = st.lists(st.tuples(st.sampled_from(["serve", "full", "free", "leave"]), st.integers(0, 5)))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), Moves)
def test_turns_are_those_of_one_line(kinds: list[int], moves: list[tuple[str, int]]) -> None:
    """Kinds change nothing: the one that waits longest with room is next, whatever its kind."""
    consumers = [FakeConsumer(str(at), names=frozenset({str(k)})) for at, k in enumerate(kinds)]
    rings, line = waiting(*consumers), list(consumers)
    for move, number in moves:
        consumer = consumers[number % len(consumers)]
        if move == "full":
            consumer.jobs = 0
        elif move == "free":
            consumer.jobs = 1
            is_out = consumer.in_flight.freed is not None
            rings.wake(consumer)
            if is_out and consumer in line:
                line.append(line.pop(line.index(consumer)))
        elif move == "leave":
            rings.leave(consumer)
            line = [one for one in line if one is not consumer]
        else:
            following = next(iter(rings.round("mail")), None)
            expected = next((one for one in line if one.jobs), None)
            assert (following and following[0]) is expected
            if expected is not None:
                line.append(line.pop(line.index(expected)))


def test_one_that_names_a_queue_twice_waits_there_once() -> None:
    """And keeps its turn."""
    twice, other = FakeConsumer("twice", queues=(("mail", 1), ("mail", 2))), FakeConsumer("other")
    rings = waiting(twice, other)
    assert [first_of(rings) for _ in range(3)] == ["twice", "other", "twice"]
    rings.leave(other)
    rings.leave(twice)
    assert rings.queues() == []
