"""The guard: whatever a handler raises, callers learn no more than they should."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio

from jobline.v1 import admin_service_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc import guard
from jobline_server.testing import RunningServer, running_server
from tests.server.calling import refusal_of
from tests.server.conftest import connect, until
from tests.server.world import make

SECRET = "the password is swordfish, in /etc/secret"
PULL = {"queues": [{"queue": "q"}]}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the guard logs."""
    found: list[dict[str, Any]] = []

    class Log:
        def error(self, event: str, **fields: Any) -> None:
            found.append({"event": event, **fields})

    monkeypatch.setattr(guard, "LOG", Log())
    return found


async def test_a_bug_in_a_unary_call_tells_only_its_number(
    server: RunningServer, channel: aio.Channel, lines: list[dict[str, Any]]
) -> None:
    """INTERNAL and BUG; the text and the stack stay in the log, under the same number."""

    def broken() -> None:
        raise RuntimeError(SECRET)

    server.runtime.core.now = broken  # type: ignore[method-assign, assignment]  # a bug on purpose
    try:
        with pytest.raises(aio.AioRpcError) as caught:
            await JobServiceStub(channel).Push(
                job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
            )
    finally:
        del server.runtime.core.now

    refusal = refusal_of(caught.value)
    assert (refusal.code, refusal.reason) == ("INTERNAL", "BUG")
    assert "swordfish" not in str(caught.value)
    assert refusal.message.endswith(lines[0]["incident"])
    assert str(lines[0]["exc_info"]) == SECRET
    assert lines[0]["method"] == "Push"


async def test_a_bug_in_a_stream_of_replies_tells_only_its_number(
    server: RunningServer, channel: aio.Channel, lines: list[dict[str, Any]]
) -> None:
    """What was sent before stays sent."""

    async def broken(*_given: Any, **_options: Any) -> AsyncIterator[list[tuple[int, None]]]:
        yield [(7, None)]
        raise RuntimeError(SECRET)

    server.runtime.waits.wait = broken  # type: ignore[assignment]  # a bug on purpose
    wait = JobServiceStub(channel).Wait(job_service_pb2.WaitRequest(ids=[7]))

    first: Any = await wait.read()
    assert first.not_found
    with pytest.raises(aio.AioRpcError) as caught:
        await wait.read()
    assert refusal_of(caught.value).reason == "BUG"
    assert "swordfish" not in str(caught.value)
    assert len(lines) == 1


async def test_a_bug_while_a_stream_is_open_tells_only_its_number(
    server: RunningServer, channel: aio.Channel, lines: list[dict[str, Any]]
) -> None:
    """And the worker's leases wait for it as after a broken connection."""

    def broken(_first: Any) -> None:
        raise RuntimeError(SECRET)

    server.runtime.streams.open_stream = broken  # type: ignore[assignment]  # a bug on purpose
    stream = JobServiceStub(channel).Stream()
    await stream.write(make(job_service_pb2.StreamRequest, open=PULL))

    with pytest.raises(aio.AioRpcError) as caught:
        await stream.read()
    assert refusal_of(caught.value).reason == "BUG"
    assert "swordfish" not in str(caught.value)
    assert len(lines) == 1


@pytest.mark.parametrize("kind", [RefusalKind.STORAGE_FAILED, RefusalKind.DATA_LOSS])
async def test_refusals_pass_through_the_table(
    server: RunningServer, channel: aio.Channel, kind: RefusalKind
) -> None:
    """From the runtime to the caller, with the time to come back."""

    async def refusing(_command: Any) -> None:
        raise Refused(kind, "said so", retry_after_ms=250)

    server.runtime.pushes.push = refusing  # type: ignore[assignment]  # what a failing disk does
    with pytest.raises(aio.AioRpcError) as caught:
        await JobServiceStub(channel).Push(job_service_pb2.PushRequest(queue="q", payloads=[b""]))

    refusal = refusal_of(caught.value)
    assert refusal.reason == kind.value
    assert "RetryInfo" in refusal.details


async def test_calls_are_metered_by_how_they_end(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Begun and ended are the same number when nothing is open."""
    stub = JobServiceStub(channel)
    meter = server.server.meters.of("jobline.v1.JobService", "Pull")
    poll = stub.Pull(make(job_service_pb2.PullRequest, **PULL, wait={"seconds": 60}))
    await until(lambda: meter.in_flight == 1)

    poll.cancel()
    await until(lambda: meter.in_flight == 0)
    await stub.Pull(make(job_service_pb2.PullRequest, **PULL))

    assert meter.ended == {"CANCELLED": 1, "OK": 1}
    assert meter.started == 2
    admission = server.server.admission
    # A call is open until its reply was written.
    await until(lambda: not admission.calls)
    assert admission.call_bytes == admission.reply_bytes == 0


@pytest.mark.parametrize(
    ("setting", "method", "request_"),
    [
        ("max_pulls", "Pull", {"queues": [{"queue": "q"}], "wait": {"seconds": 60}}),
        ("max_waiters", "Wait", {"ids": [1 << 52]}),
        ("max_watchers", "Watch", {}),
    ],
)
async def test_calls_that_wait_are_bounded(
    transport: str, setting: str, method: str, request_: dict[str, Any]
) -> None:
    """One more is refused with TOO_MANY_CALLS, and when one has gone the next one fits."""
    options: dict[str, Any] = {"transport": transport, setting: 1}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub: Any = JobServiceStub(channel)
        request = make(getattr(job_service_pb2, f"{method}Request"), **request_)
        gates = {"Pull": "pulls", "Wait": "waiters", "Watch": "watchers"}
        gate = getattr(server.server.admission, gates[method])
        if method == "Wait":
            later = {"text": "x", "delay": {"seconds": 600}}
            pushed = await stub.Push(make(job_service_pb2.PushRequest, queue="q", jobs=[later]))
            request = job_service_pb2.WaitRequest(ids=pushed.ids)
        first = getattr(stub, method)(request)
        await until(lambda: len(gate) == 1)

        second = getattr(stub, method)(request)
        with pytest.raises(aio.AioRpcError) as caught:
            await (second if method == "Pull" else second.read())
        assert refusal_of(caught.value).reason == "TOO_MANY_CALLS"
        assert "QuotaFailure" in refusal_of(caught.value).details

        first.cancel()
        await until(lambda: len(gate) == 0)


async def test_unary_calls_are_bounded(transport: str) -> None:
    """Over the bound a call is refused before it is decoded."""
    options: dict[str, Any] = {"transport": transport, "max_calls": 1}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        poll = stub.Pull(make(job_service_pb2.PullRequest, **PULL, wait={"seconds": 60}))
        await until(lambda: server.server.admission.calls == 1)

        with pytest.raises(aio.AioRpcError) as caught:
            await AdminServiceStub(channel).GetStats(admin_service_pb2.GetStatsRequest())
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        poll.cancel()


async def test_a_refused_call_costs_no_log_line(
    channel: aio.Channel, lines: list[dict[str, Any]]
) -> None:
    """Bad input is the caller's affair."""
    with pytest.raises(aio.AioRpcError):
        await JobServiceStub(channel).Push(job_service_pb2.PushRequest())

    assert not lines
