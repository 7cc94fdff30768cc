"""Rounds of a ring leave out whole kinds of consumers, and everybody keeps their turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline_server.dispatch import ring
from jobline_server.dispatch.consumer import Kind, kind_of
from jobline_server.dispatch.rings import ConsumerRings
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


KINDS = 10 * ring.FEW_KINDS


def own_names(count: int = KINDS) -> list[FakeConsumer]:
    """Consumers that each handle a name of their own."""
    return [FakeConsumer(str(at), names=frozenset({f"n{at}"})) for at in range(count)]


def asked_for(rings: ConsumerRings[FakeConsumer], *names: str) -> list[str]:
    return [consumer.name for consumer, _ in rings.round("mail", (), names)]


def test_those_who_handle_no_name_that_is_ready_are_not_asked() -> None:
    """However many they are: a job for one of 4,000 workers with names of their own took 80 ms."""
    consumers = own_names()
    rings = waiting(*consumers)
    assert asked_for(rings, "n7", "other", "n3", "n5") == ["3", "5", "7"]
    assert asked_for(rings, "other") == []
    assert sum(consumer.asked for consumer in consumers) == 3


def test_of_few_kinds_all_are_asked() -> None:
    """To choose them costs as much."""
    rings = waiting(*own_names(ring.FEW_KINDS))
    assert len(asked_for(rings, "n7")) == ring.FEW_KINDS


def test_those_who_are_not_asked_keep_their_turns() -> None:
    """Who was asked stands behind them, also if it alone is asked again and again."""
    rings = waiting(*own_names())
    for _ in range(3):
        assert asked_for(rings, "n0", "n2") == ["0", "2"]
    line = [consumer.name for consumer, _ in rings.round("mail")]
    assert line == ["1", *map(str, range(3, KINDS)), "0", "2"]


def test_who_handles_any_name_or_very_many_is_asked_with_the_others() -> None:
    """In turn. Too many names of one consumer would take too much memory."""
    many = frozenset(f"m{number}" for number in range(ring.NAMES_INDEXED + 1))
    some = [FakeConsumer("any"), FakeConsumer("many", names=many)]
    rings = waiting(*own_names(), *some)
    assert asked_for(rings, "n1") == ["1", "any", "many"]
    for one in some:
        rings.leave(one)
    assert asked_for(rings, "n1") == ["1"]


def test_a_round_of_some_is_as_one_of_all_for_those_in_it() -> None:
    """Of those that are full, gone, served by others meanwhile, or miss."""
    letters = [FakeConsumer(f"l{at}", names=LETTERS, version=str(at)) for at in range(5)]
    rings = waiting(*own_names(), *letters)
    letters[0].jobs, missed, asked = 0, set[Kind](), []
    for consumer, _ in rings.round("mail", missed, ["letter"]):
        asked.append(consumer.name)
        if consumer is letters[1]:
            missed.add(kind_of(consumer, "mail"))
            missed.add(kind_of(letters[2], "mail"))
            rings.leave(letters[3])
    assert asked == ["l1", "l4"]
    letters[0].jobs = 1
    rings.wake(letters[0])
    assert asked_for(rings, "letter") == ["l1", "l2", "l4", "l0"]


def test_a_round_of_some_goes_by_turns_that_change_within_it() -> None:
    """A hand-out may make another one of the same queue."""
    same = of_kind(LETTERS, "a", "b", "c")
    rings = waiting(*own_names(), *same)
    asked = []
    for consumer, _ in rings.round("mail", (), ["letter"]):
        asked.append(consumer.name)
        if asked == ["a"]:
            assert asked_for(rings, "letter")[:2] == ["b", "c"]
    assert asked == ["a"]


def test_all_are_asked_where_all_handle_what_is_ready_or_many_do() -> None:
    """It would cost more to choose them."""
    consumers = [
        FakeConsumer(str(at), names=frozenset({"letter", f"n{at}"})) for at in range(KINDS)
    ]
    rings = waiting(*consumers)
    assert len(asked_for(rings, "letter")) == KINDS
    rings.join(FakeConsumer("other", names=PARCELS))
    assert len(asked_for(rings, "letter")) == KINDS
    assert len(asked_for(rings, *(f"n{at}" for at in range(KINDS)), "letter")) == KINDS + 1


def test_many_names_that_are_ready_are_compared_with_the_few_that_are_handled() -> None:
    """And not one by one."""

    class Unwalked(dict[str, int]):
        def __iter__(self) -> NoReturn:
            raise AssertionError

    rings = waiting(*own_names())
    ready = Unwalked.fromkeys([f"n{at}" for at in range(KINDS - 2, 10 * KINDS)], 1)
    asked = [consumer.name for consumer, _ in rings.round("mail", (), ready)]
    assert asked == [str(KINDS - 2), str(KINDS - 1)]


MOVES = ("serve", "full", "free", "leave", "0", "1")
Moves = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 5)))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), Moves)
def test_turns_are_those_of_one_line(kinds: list[int], moves: list[tuple[str, int]]) -> None:
    """Kinds change nothing: the one that waits longest with room is next, whatever its kind; of
    those that handle a name, where only they are asked."""
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
            ready = None if move == "serve" else {move}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ring, "FEW_KINDS", 0)
                following = next(iter(rings.round("mail", (), ready)), None)
            expected = next((one for one in line if one.jobs and _handles(one, ready)), None)
            assert (following and following[0]) is expected
            if expected is not None:
                line.append(line.pop(line.index(expected)))


def _handles(consumer: FakeConsumer, ready: set[str] | None) -> bool:
    return ready is None or consumer.names is None or bool(consumer.names & ready)


def test_one_that_names_a_queue_twice_waits_there_once() -> None:
    """And keeps its turn."""
    twice, other = FakeConsumer("twice", queues=(("mail", 1), ("mail", 2))), FakeConsumer("other")
    rings = waiting(twice, other)
    assert [first_of(rings) for _ in range(3)] == ["twice", "other", "twice"]
    rings.leave(other)
    rings.leave(twice)
    assert rings.queues() == []
