"""Which operations can be undone, and why the others cannot.

An undo needs what the operation kept of the state before it. A delete keeps nothing: it has to make
room at once, on a full disk too, so there is no first stage in which its jobs would go on taking
room. Other calls have let something go that cannot be called back, as a job that was handed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jobline_server.engine.operations import CancelledJobs, OperationState
from jobline_server.runtime.calls.operations import OperationView

_GONE = "the jobs that it deleted are gone, because a delete makes room at once"
_MAY_RUN = "its jobs may have been handed out; CancelJobs cancels those that wait"
_SETTINGS = "an operation keeps no settings of schedules; "

FINAL: Mapping[str, str] = MappingProxyType(
    {
        "DeleteJobs": _GONE,
        "PurgeDeadJobs": _GONE,
        "DrainQueue": _GONE,
        "CleanQueue": _GONE,
        "DeleteQueue": "the queue and its jobs are gone, because a delete makes room at once",
        "PromoteJobs": _MAY_RUN,
        "RetryJobs": _MAY_RUN,
        "TriggerSchedule": _MAY_RUN,
        "UndoOperation": _MAY_RUN,
        "UpdateJob": "what the job was before is not kept; UpdateJob changes it again",
        "ForgetKey": "another job may have taken the key",
        "CreateSchedule": f"{_SETTINGS}DeleteSchedule deletes it",
        "UpdateSchedule": f"{_SETTINGS}UpdateSchedule changes them again",
        "DeleteSchedule": f"{_SETTINGS}CreateSchedule creates it again",
        "CreateWebhook": "what it was told of stays told; DeleteWebhook deletes it",
        "UpdateWebhook": "what it was before is not kept; UpdateWebhook changes it again",
        "RotateWebhookSecret": "an operation keeps no secrets; the one before holds for a day",
        "TestWebhook": "its test event is sent",
        "DeleteWebhook": "its secret and its deliveries are gone; CreateWebhook creates it again",
        "CancelBatch": "its batches are closed; RetryJobs puts their jobs back",
    }
)
"""Why no operation of a call can be undone, by the method that was called. An undo is only final if
it put jobs back."""


def why_not(view: OperationView) -> str:
    """Returns why an operation cannot be undone, "" if it may be."""
    operation, change = view.operation, view.operation.change
    if view.undone_by:
        return f"operation {view.undone_by} has undone it"
    if view.is_running:
        return "it goes on"
    if change is None and operation.verb in FINAL:
        return FINAL[operation.verb]
    if operation.state is OperationState.STARTED:
        return "the server stopped before it was over, so what it did is not known"
    if change is None:
        return f"what {operation.verb} does cannot be undone"
    if isinstance(change, CancelledJobs):
        if change.cut:
            return "its jobs are too scattered to be kept; RetryJobs puts them back by a filter"
        return "" if change.runs else "it cancelled no job that waited for its turn or its time"
    return "" if change.before != change.after else "it changed nothing"
