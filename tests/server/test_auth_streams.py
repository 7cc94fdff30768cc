"""Calls that stay open: they end soon after their callers may have them no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server.access import api_key, auth_file, channel_of, channel_with, role
from tests.server.calling import Refusal, refusal_of
from tests.server.conftest import until
from tests.unit.auth.tokens import Issuer, issuer_lines

ALL = ["push", "work", "read", "read_payload", "manage"]
MAIL = role("mail", (["mail"], ALL))
FILE = MAIL + api_key("mail", "mail") + role("other", (["other"], ALL)) + api_key("other", "other")
OPEN = {"open": {"queues": [{"queue": "mail"}], "worker": {"id": "w"}}}
WINDOW = {"window": {"maxInFlight": 5}}


@pytest.fixture
async def guarded(transport: str, tmp_path: Path) -> AsyncIterator[RunningServer]:
    path = auth_file(tmp_path, FILE)
    async with running_server(transport=transport, auth=path, data=tmp_path / "data") as server:
        yield server


async def opened(channel: aio.Channel, opening: dict[str, Any] = OPEN) -> Any:
    """A worker stream that the server has answered."""
    stream: Any = JobServiceStub(channel).Stream()
    await stream.write(ParseDict(opening | WINDOW, pb.StreamRequest()))
    assert (await stream.read()).opened.session
    return stream


async def end_of(call: Any) -> Refusal:
    """What a call ends with."""
    try:
        while await call.read() is not aio.EOF:
            pass
    except aio.AioRpcError as error:
        return refusal_of(error)
    code, metadata = await call.code(), await call.trailing_metadata()
    return refusal_of(aio.AioRpcError(code, aio.Metadata(), metadata, details=await call.details()))


async def change(server: RunningServer, text: str) -> None:
    """Has the server read a changed file."""
    path = server.server.settings.auth
    assert path is not None
    path.write_text(text)
    background = server.server.background
    (task,) = [task for task in background.tasks if task.name == "access_file"]
    await background.run_once(task)


def let_pass(server: RunningServer, seconds: int) -> None:
    """Has the timers of open calls see a later time."""
    access = server.server.authentication.access
    assert access is not None
    now_ms = access._wall_ms()
    for call in access.open_calls:
        call._wall_ms = lambda: now_ms + 1_000 * seconds
        call.set_timer()


async def test_a_stream_needs_all_its_queues(guarded: RunningServer) -> None:
    queues = [{"queue": "mail"}, {"queue": "other"}]
    handlers = [{"queue": "other", "name": "n"}]
    async with channel_of(guarded.address, "mail") as channel:
        await opened(channel)
        for wanted in ({"queues": queues}, {"queues": queues[:1], "handlers": handlers}):
            stream: Any = JobServiceStub(channel).Stream()
            await stream.write(ParseDict({"open": wanted}, pb.StreamRequest()))
            refusal = await end_of(stream)
            assert (refusal.code, refusal.reason) == ("PERMISSION_DENIED", "NOT_ALLOWED")


async def test_calls_end_when_the_key_is_taken_away(guarded: RunningServer) -> None:
    """A stream, a watch and a wait; leases wait for the worker as after a broken connection."""
    async with channel_of(guarded.address, "mail") as channel:
        stub: Any = JobServiceStub(channel)
        stream = await opened(channel)
        pushed = await stub.Push(pb.PushRequest(queue="mail", payloads=[b"x"]))
        assert (await stream.read()).jobs
        watch = stub.Watch(pb.WatchRequest(queues=["mail"]))
        await watch.read()
        wait = stub.Wait(pb.WaitRequest(ids=[pushed.first_id or pushed.ids[0]]))
        access = guarded.server.authentication.access
        assert access is not None
        await until(lambda: len(access.open_calls) == 3)
        await change(guarded, MAIL + api_key("new", "mail"))
        for call in (stream, watch, wait):
            assert (await end_of(call)).reason == "TOKEN_UNKNOWN"
        assert len(access.open_calls) == 0
    async with channel_of(guarded.address, "new") as channel:
        job = guarded.runtime.jobs.live(pushed.first_id or pushed.ids[0])
        assert job is not None
        assert job.state.name == "ACTIVE"


async def test_calls_end_when_the_role_is_changed(guarded: RunningServer) -> None:
    async with channel_of(guarded.address, "mail") as channel:
        stream = await opened(channel)
        watch: Any = JobServiceStub(channel).Watch(pb.WatchRequest(queues=["mail"]))
        await watch.read()
        await change(guarded, role("mail", (["mail"], ["read"])) + api_key("mail", "mail"))
        refusal = await end_of(stream)
        assert (refusal.code, refusal.reason) == ("PERMISSION_DENIED", "NOT_ALLOWED")
        access = guarded.server.authentication.access
        assert access is not None
        assert len(access.open_calls) == 1
        watch.cancel()


@pytest.mark.parametrize("queues", [["mail"], ["*"]])
async def test_a_wait_shows_what_its_caller_may_see_when_a_job_ends(
    guarded: RunningServer, queues: list[str]
) -> None:
    """A result was shown after `read_payload` was taken away, and was not after it was given."""
    may, may_not = (
        role("mail", (queues, verbs)) + api_key("mail", "mail")
        for verbs in (ALL, ["push", "work", "read"])
    )
    access = guarded.server.authentication.access
    assert access is not None
    await change(guarded, may)
    for before, after in ((may, may_not), (may_not, may)):
        async with channel_of(guarded.address, "mail") as channel:
            stub: Any = JobServiceStub(channel)
            pushed = await stub.Push(pb.PushRequest(queue="mail", payloads=[b"x"] * 2))
            ids = list(range(pushed.first_id, pushed.first_id + 2))
            wait = stub.Wait(pb.WaitRequest(ids=ids))
            await until(lambda: len(access.open_calls) == 1)
            pulled = await stub.Pull(
                pb.PullRequest(queues=[pb.QueueWeight(queue="mail")], max_jobs=2)
            )
            one, other = (
                pb.AckItem(id=job.id, delivery=job.delivery, result=b"secret")
                for job in pulled.jobs
            )
            for item, now in ((one, before), (other, after)):
                await stub.Ack(pb.AckRequest(items=[item]))
                reply = await wait.read()
                assert reply.id == item.id
                shown = (b"secret", False) if now is may else (b"", True)
                assert (reply.result, reply.result_hidden) == shown
                await change(guarded, after)
            assert await wait.read() is aio.EOF


async def test_a_wrong_file_changes_nothing(guarded: RunningServer) -> None:
    """The old rules stay in force, and the metrics say so."""
    async with channel_of(guarded.address, "mail") as channel:
        stream = await opened(channel)
        await change(guarded, "keys = 7")
        await JobServiceStub(channel).Push(pb.PushRequest(queue="mail", payloads=[b"x"]))
        assert (await stream.read()).jobs
        await change(guarded, FILE)
        await JobServiceStub(channel).Push(pb.PushRequest(queue="mail", payloads=[b"x"]))
        assert (await stream.read()).jobs
        stream.cancel()


async def test_a_stream_ends_with_its_token(transport: str, tmp_path: Path) -> None:
    """And goes on with its session, and its leases, under a new one."""
    issuer = Issuer()
    (tmp_path / "keys.json").write_bytes(issuer.jwks())
    path = auth_file(tmp_path, MAIL + issuer_lines('jwks_file = "keys.json"'))
    async with running_server(transport=transport, auth=path, data=tmp_path / "data") as server:

        def channel(seconds: float) -> aio.Channel:
            token = issuer.token(seconds=seconds, roles=["mail"])
            return channel_with(server.address, ("authorization", f"Bearer {token}"))

        async with channel(600) as short, channel(900) as long:
            stub: Any = JobServiceStub(long)
            stream: Any = JobServiceStub(short).Stream()
            await stream.write(ParseDict(OPEN | WINDOW, pb.StreamRequest()))
            session = (await stream.read()).opened.session
            await stub.Push(pb.PushRequest(queue="mail", payloads=[b"x"]))
            (job,) = (await stream.read()).jobs
            watch: Any = JobServiceStub(short).Watch(pb.WatchRequest(queues=["mail"]))
            await watch.read()
            let_pass(server, 700)
            for call in (stream, watch):
                refusal = await end_of(call)
                assert (refusal.code, refusal.reason) == ("UNAUTHENTICATED", "TOKEN_EXPIRED")
            again = await opened(long, {"open": OPEN["open"] | {"session": session}})
            settle = {"settles": [{"seq": 1, "ackIds": [job.id], "ackDeliveries": [job.delivery]}]}
            await again.write(ParseDict(settle, pb.StreamRequest()))
            async with asyncio.timeout(20):
                while not (answer := await again.read()).confirms:
                    pass
            assert not answer.confirms[0].exceptions
            again.cancel()


async def test_reflection_needs_a_known_caller(guarded: RunningServer) -> None:
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    question = b"\x3a\x00"
    async with channel_with(guarded.address) as channel:
        stream: Any = channel.stream_stream(path)()
        await stream.write(question)
        assert (await end_of(stream)).reason == "AUTH_REQUIRED"
    async with channel_of(guarded.address, "other") as channel:
        stream = channel.stream_stream(path)()
        await stream.write(question)
        assert b"jobline.v1.JobService" in await stream.read()
        stream.cancel()
