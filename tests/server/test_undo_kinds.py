"""Every kind of operation can be undone, or is refused with a reason of its own."""

from __future__ import annotations

import pytest
from grpc import aio

from jobline_server.runtime.calls.undoable import FINAL
from jobline_server.testing import running_server
from tests.server.calling import call as refused_call
from tests.server.calling import encoded
from tests.server.conftest import connect
from tests.server.test_operations import CALLS, batch, call, filled, job

UNDO = "AdminService/UndoOperation"
UNDOABLE = {
    "UpdateQueue",
    "PauseQueue",
    "ResumeQueue",
    "LimitQueue",
    "UpdateGroup",
    "PauseGroup",
    "ResumeGroup",
    "LimitGroup",
    "UpsertLimiter",
    "EmptyLimiter",
    "DeleteLimiter",
    "PauseSchedule",
    "ResumeSchedule",
    "CancelJobs",
}


def verb_of(rpc: str) -> str:
    return rpc.split("/")[1]


def test_every_kind_is_undoable_or_final() -> None:
    """A new call needs an undo, or a reason. An undo may be either."""
    assert {verb_of(rpc) for rpc in CALLS} == UNDOABLE | {*FINAL}
    assert not UNDOABLE & {*FINAL}


async def test_every_kind_is_undone_or_refused() -> None:
    """Right after the call, when nothing has changed since; what is refused changes nothing."""
    async with running_server() as server, connect(server.address) as channel:
        ids = {"JOB": await job(channel), "BATCH": await batch(channel)}
        for rpc, request in CALLS.items():
            if rpc == UNDO:
                continue
            done = await call(channel, rpc, filled(request, **ids))
            await _check(channel, rpc, done.operation_id)


async def _check(channel: aio.Channel, rpc: str, operation_id: str) -> None:
    asked = {"operationId": operation_id, "dryRun": True}
    refusal = await refused_call(channel, UNDO, [encoded(UNDO, asked)])
    if verb_of(rpc) in UNDOABLE:
        assert refusal is None, (rpc, refusal)
        return
    assert refusal is not None, rpc
    found = (refusal.code, refusal.reason, refusal.field)
    assert found == ("FAILED_PRECONDITION", "NOT_UNDOABLE", "operation_id")
    assert refusal.message.endswith(FINAL[verb_of(rpc)])


@pytest.mark.parametrize("rpc", ["QueueService/PauseQueue", "JobAdminService/CancelJobs"])
async def test_undos_of_settings_are_undone_and_of_jobs_are_not(rpc: str) -> None:
    """An undo of a pause is a pause; jobs that were put back may run at once."""
    async with running_server() as server, connect(server.address) as channel:
        await job(channel)
        done = await call(channel, rpc, CALLS[rpc])
        undone = await call(channel, UNDO, {"operationId": done.operation_id})
        asked = encoded(UNDO, {"operationId": undone.operation_id})
        refusal = await refused_call(channel, UNDO, [asked])
    if "Jobs" not in rpc:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.reason == "NOT_UNDOABLE"
        assert refusal.message.endswith(FINAL["UndoOperation"])
