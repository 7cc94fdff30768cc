"""Sealed jobs from end to end, and what is left when their key is dropped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    BatchCallback,
    Client,
    FlowJob,
    JobDead,
    JobState,
    NewJob,
    WaitFor,
    Worker,
)
from jobline.codec import KEY_HEADER, Codec, KeyMap
from jobline.errors import InvalidArgument, KeyErased, SealError
from jobline_server.testing import running_server
from tests.client.live import process_handlers as handlers
from tests.client.live.either import in_thread
from tests.client.live.working import working

SECRET = "secret-of-the-tenant"  # what must not be found


@pytest.fixture
def keys() -> dict[str, bytes]:
    return {"tenant-7": os.urandom(32), "tenant-8": os.urandom(32)}


@pytest.fixture
def codec(keys):
    ring = KeyMap(keys, current=lambda group: group or "tenant-7")
    return Codec(ring, hashed_tags={"email"}, tag_key=bytes(32))


@pytest.fixture(scope="module")
async def server():
    """One for all tests but that of files: each has its queues empty when it is over."""
    async with running_server() as server:
        yield server


async def test_all_that_a_handler_reads_and_says_is_sealed_on_the_server(server, codec):
    """Payload, result, checkpoint, phases, partial; the handler and the client see them plain."""
    async with (
        AsyncClient(server.address, codec=codec) as client,
        AsyncClient(server.address) as stranger,
    ):
        worker = Worker(server.address, codec=codec)

        @worker.handler("q")
        async def handle(payload, context):
            context.save_checkpoint({"at": SECRET})
            context.phases.finish("one", SECRET)
            context.partial(SECRET)
            return {"got": payload}

        pushed = await client.push(
            "q", {"to": SECRET}, group="tenant-8", phases=["one"], tags=[f"email:{SECRET}", "eu"]
        )
        (many,) = await client.push_many("q", [NewJob({"to": SECRET})])
        async with working(worker):
            end = await client.wait_one(pushed.id, timeout=30)
            assert end.value() == {"got": {"to": SECRET}}
            await client.wait_one(many.id, timeout=30)
        job = await client.jobs.get(pushed.id)
        assert job.value() == {"to": SECRET}
        assert job.result_value() == {"got": {"to": SECRET}}
        assert job.phases[0].result_value() == SECRET
        found = [one.id async for one in client.jobs.list(f"tag:{codec.tag('email', SECRET)}")]
        assert found == [pushed.id]

        bare = await stranger.jobs.get(pushed.id)
        assert (bare.options.headers or {})[KEY_HEADER] == "tenant-8"
        assert SECRET not in repr(bare)
        with pytest.raises(KeyErased, match="tenant-8"):
            bare.result_value()
        with pytest.raises(KeyErased, match="tenant-8"):
            (await stranger.wait_one(pushed.id)).value()


async def test_templates_and_flows_are_sealed_too(server, codec):
    async with (
        AsyncClient(server.address, codec=codec) as client,
        AsyncClient(server.address) as stranger,
    ):
        root = FlowJob("parents", {"of": SECRET}, children=[FlowJob("children", SECRET)])
        await client.flows.push(root)
        await client.schedules.create("nightly", "q", {"at": SECRET}, cron="0 3 * * *")
        batch = await client.batches.create(on_complete=BatchCallback(queue="done", payload=SECRET))
        await batch.close()
        for queue in ("children", "done"):
            (leased,) = await stranger.pull(queue, wait=5)
            with pytest.raises(KeyErased):
                leased.value()
            await stranger.release(leased)
            (again,) = await client.pull(queue, wait=5)
            assert again.value() == SECRET
            await client.ack(again, result={"was": SECRET})
        schedule = await stranger.schedules.get("nightly")
        assert SECRET not in repr(schedule)
        with pytest.raises(InvalidArgument, match="codec"):
            await client.jobs.update(1, payload="x")
        with pytest.raises(InvalidArgument, match="with the job itself"):
            await client.ack((1, 1), result="x")


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_job_whose_key_was_dropped_is_dead(server, codec, keys, processes):
    """Before it ran, and while it ran: what is not sealed goes on."""
    async with AsyncClient(server.address, codec=codec) as client:
        worker = Worker(server.address, codec=codec, processes=processes)
        worker.handler("q", "crash")(handlers.crash)
        lost = await client.push("q", "fine", name="crash", group="tenant-8")
        del keys["tenant-8"]
        kept = await client.push("q", "fine", name="crash")
        async with AsyncClient(server.address) as plain:
            unsealed = await plain.push("q", "plain", name="crash")
        async with working(worker):
            with pytest.raises(JobDead, match="KeyErased"):
                (await client.wait_one(lost.id, timeout=30)).value()
            assert (await client.wait_one(kept.id, timeout=30)).value() == "fine"
            assert (await client.wait_one(unsealed.id, timeout=30)).value() == "plain"
        job = await client.jobs.get(lost.id)
        assert (job.state, job.attempts) == (JobState.DEAD, 1)
        with pytest.raises(KeyErased):
            job.value()


async def test_after_dropping_the_key_nothing_readable_is_left(codec, keys, tmp_path):
    """Not in the store, not in its journal, not in the exported history."""
    history = tmp_path / "history"
    async with (
        running_server(tmp_path / "data", history=str(history), history_seconds=1) as server,
        AsyncClient(server.address, codec=codec) as client,
    ):
        worker = Worker(server.address, codec=codec)

        @worker.handler("q")
        async def handle(payload, context):
            context.save_checkpoint({"at": SECRET})
            return {"got": payload, "and": SECRET}

        pushed = await client.push("q", {"to": SECRET}, tags=[f"email:{SECRET}"])
        async with working(worker):
            end = await client.wait_one(pushed.id, timeout=30)
        assert SECRET in repr(end.value())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    keys.clear()
    with pytest.raises(SealError):
        codec.open(codec_frame_in(files))


def codec_frame_in(files: list[Path]) -> bytes:
    """Returns a frame as one of the files has it."""
    for path in files:
        data = path.read_bytes()
        at = data.find(b"\x00JL\x01\x02\x08tenant-7")
        if at >= 0:
            return data[at : at + 200]
    raise AssertionError("no file has the frame")


async def test_children_and_spawned_jobs_of_a_handler_are_sealed(server, codec):
    async with (
        AsyncClient(server.address, codec=codec) as client,
        AsyncClient(server.address) as stranger,
    ):
        worker = Worker(server.address, codec=codec)

        @worker.handler("parents")
        def parent(payload, context):
            children = context.children()
            if not children:
                context.spawn("spawned", {"of": SECRET})
                raise WaitFor(FlowJob("kids", {"of": SECRET}))
            return children[0].result_value()

        @worker.handler("kids")
        def kid(payload):
            return payload["of"]

        pushed = await client.push("parents", SECRET)
        async with working(worker):
            assert (await client.wait_one(pushed.id, timeout=30)).value() == SECRET
        (spawned,) = await stranger.pull("spawned")
        assert SECRET.encode() not in spawned.payload


async def test_the_blocking_client_does_the_same(server, codec):
    def use() -> None:
        with Client(server.address, codec=codec) as client:
            client.push("q", {"to": SECRET}, job_key="once")
            assert client.push("q", {"to": SECRET}, job_key="once").outcome.name == "DUPLICATE"
            (job,) = client.pull("q", wait=5)
            assert job.value() == {"to": SECRET}
            client.extend(job, checkpoint={"at": 1})
            client.ack(job, result=[1])
            assert client.wait_one(job.id).value() == [1]

    await in_thread(use)
