"""Gates: what one caller may have of the places, and of what calls keep while they are open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from jobline_server.auth.grants import READ, WORK, Caller, Grants
from jobline_server.engine.commands import Refused
from jobline_server.rpc.caller import CALLER
from jobline_server.rpc.gates import Gate

SOME = Caller("key:some", Grants([(READ, ["mail"]), (WORK, ["*"])]))
OTHER = Caller("key:other", Grants([(READ, ["sms"])]))
EVERY = Caller("key:every", Grants([(READ, ["*"])]))


@contextmanager
def calling(caller: Caller | None) -> Iterator[None]:
    """Has the running call be of this caller."""
    token = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(token)


def held_by(gate: Gate, *callers: Caller | None) -> list[str]:
    """Has callers hold five each, one after the other; returns what was refused."""
    said = []
    with ExitStack() as stack:
        for caller in callers:
            try:
                with calling(caller):
                    stack.enter_context(gate.holding(5))
            except Refused as refused:
                said.append(refused.message)
    assert gate.held == 0
    return said


def test_one_caller_holds_half_at_most() -> None:
    """A verb on one queue, or another one on all, is not that verb on all."""
    gate = Gate("ids", 10, 21, verb=READ)
    assert held_by(gate, SOME, SOME, OTHER, OTHER) == []
    (said,) = held_by(gate, SOME, SOME, SOME, OTHER)
    assert "ids of one caller" in said
    (said,) = held_by(gate, SOME, SOME, OTHER, OTHER, EVERY)
    assert "of one caller" not in said


@pytest.mark.parametrize("caller", [EVERY, None])
def test_who_may_do_so_with_all_queues_holds_all(caller: Caller | None) -> None:
    """And everybody does where callers are not authenticated."""
    gate = Gate("ids", 10, 20, verb=READ)
    assert held_by(gate, *[caller] * 4) == []
    assert len(held_by(gate, *[caller] * 5)) == 1


def test_what_was_given_back_may_be_held_again() -> None:
    gate = Gate("ids", 10, 10, verb=READ)
    for _ in range(3):
        assert len(held_by(gate, SOME, SOME)) == 1


def test_a_gate_without_a_verb_has_no_shares() -> None:
    assert held_by(Gate("ids", 10, 20), *[SOME] * 4) == []


async def test_one_caller_has_half_of_the_places() -> None:
    gate = Gate("waiters", 3, verb=READ)
    with ExitStack() as stack, calling(SOME):
        for _ in range(2):
            stack.enter_context(gate.admitted())
        with pytest.raises(Refused, match="waiters of one caller"):
            stack.enter_context(gate.admitted())
        with calling(OTHER):
            stack.enter_context(gate.admitted())
