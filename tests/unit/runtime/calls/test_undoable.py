"""Why operations cannot be undone, by what they are."""

from __future__ import annotations

import pytest

from jobline_server.engine.operations import (
    CancelledJobs,
    Change,
    Operation,
    OperationState,
    Pause,
    PauseChange,
)
from jobline_server.runtime.calls.operations import OperationView
from jobline_server.runtime.calls.undoable import FINAL, why_not

PAUSED = PauseChange(Pause(), Pause(paused=True))


def view(
    verb: str,
    change: Change | None = None,
    state: OperationState = OperationState.DONE,
    *,
    undone_by: str = "",
    is_running: bool = False,
) -> OperationView:
    return OperationView(
        Operation("o", verb, "ops", 1, state, change=change), 1, undone_by, is_running, ""
    )


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (view("PauseQueue", PAUSED), ""),
        (view("UndoOperation", PAUSED), ""),
        (view("CancelJobs", CancelledJobs(((1, 1, 0),)), OperationState.INTERRUPTED), ""),
        (view("PauseQueue", PAUSED, undone_by="p"), "operation p has undone it"),
        (view("DeleteJobs", is_running=True), "it goes on"),
        (view("DeleteJobs"), "a delete makes room at once"),
        (view("DeleteJobs", state=OperationState.STARTED), "a delete makes room at once"),
        (view("UndoOperation"), "may have been handed out"),
        (view("CancelJobs", state=OperationState.STARTED), "the server stopped"),
        (view("LaterCall"), "what LaterCall does cannot be undone"),
        (view("CancelJobs", CancelledJobs(cut=True)), "RetryJobs puts them back"),
        (view("CancelJobs", CancelledJobs()), "it cancelled no job that waited"),
        (view("PauseQueue", PauseChange(Pause(), Pause())), "it changed nothing"),
    ],
)
def test_an_operation_can_be_undone_or_says_why_not(operation: OperationView, why: str) -> None:
    found = why_not(operation)
    assert why in found
    assert bool(found) == bool(why)


def test_reasons_are_clauses_of_a_sentence() -> None:
    """They follow "operation … cannot be undone: "."""
    for why in FINAL.values():
        assert why[0].islower()
        assert not why.endswith(".")
        assert len(why) < 120
