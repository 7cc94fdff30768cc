"""Jobs that a handler spawns: their keys and their batch, and what a test sees of them."""

from __future__ import annotations

import pytest

from jobline import Context, InvalidArgument, JobOptions, LeasedJob, job
from jobline.testing import make_context
from jobline.v1 import job_pb2
from tests.client.live.working import Silent


@job(queue="images", max_attempts=5)
def resize(path: str, width: int = 100, batch_id: int = 0) -> None:
    return None


@job(queue="mail")
def welcome(to: str) -> None:
    return None


def in_batch(batch_id: int) -> LeasedJob:
    return LeasedJob(7, 1, "parents", job_pb2.JobOptions(batch_id=batch_id), b"")


def test_a_spawned_job_has_a_key_of_its_parent_and_its_place():
    """So an attempt that runs again pushes nothing twice; a key of its own if it is given one."""
    keys = []
    for attempt in (1, 2):
        context = make_context(id=7, attempt=attempt)
        context.spawn("mail", {"to": "a"}, priority=3)
        context.spawn(welcome, "b")
        context.spawn(resize, path="c.png", spawn_key="small")
        context.spawn("mail", b"d", spawn_key="2")
        keys.append([one.how["job_key"] for one in context.spawned])
    assert keys[0] == keys[1] == ["spawn:7:1", "spawn:7:2", "spawn:7:=small", "spawn:7:=2"]
    first, second, third, _ = context.spawned
    assert (first.queue, first.payload, first.how["priority"]) == ("mail", b'{"to":"a"}', 3)
    assert (second.queue, second.payload) == ("mail", b'"b"')
    assert (third.payload, third.how["options"].max_attempts) == (b'{"path":"c.png"}', 5)


async def test_an_async_handler_spawns_alike():
    """By the awaited method; numbers go on."""
    context = make_context()
    await context.spawn_async("mail", 1)
    pushed = await context.spawn_async(welcome, "b")
    assert [one.how["job_key"] for one in context.spawned] == ["spawn:1:1", "spawn:1:2"]
    assert pushed.id == 1_000_002


def test_a_spawned_job_joins_the_batch_of_its_parent():
    """Unless it names another one; a parameter of that name is a value of the job."""
    recorder = make_context()
    context = Context(in_batch(4), Silent(), None, recorder._calls)
    context.spawn("mail", 1)
    context.spawn("mail", 1, batch_id=5)
    context.spawn("mail", 1, options=JobOptions(batch_id=6))
    context.spawn(welcome, "a")
    context.spawn(resize, "a.png", batch_id=9)
    found = [one.how.get("batch_id") for one in recorder.spawned]
    assert found == [4, 5, None, 4, 4]
    assert recorder.spawned[-1].payload == b'{"path":"a.png","batch_id":9}'


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (("mail", 1), {"job_key": "k"}, "give spawn_key"),
        (("mail", 1), {"spawn_key": ""}, "1 to 200 bytes"),
        (("mail", 1), {"spawn_key": "é" * 101}, "1 to 200 bytes"),
        (("mail", 1), {"spawn_key": b"k"}, "must be text"),
        ((print, 1), {}, "a queue or a declared job"),
        ((welcome, 1, 2), {}, "positional"),
    ],
)
def test_a_spawn_that_cannot_be_is_refused(arguments, more, said):
    """Before anything is sent."""
    context = make_context()
    with pytest.raises((InvalidArgument, TypeError), match=said):
        context.spawn(*arguments, **more)
    assert context.spawned == []


def test_a_context_of_nobody_spawns_nothing():
    """And says where to get one that does."""
    with pytest.raises(RuntimeError, match="make_context"):
        Context(in_batch(0), Silent()).spawn("mail", 1)
    assert Context(in_batch(0), Silent()).children() == []
