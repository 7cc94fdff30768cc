"""Arguments of the wrong type or out of bounds are refused where they are given, by name, with what
to write instead.
"""

from __future__ import annotations

from typing import Any

import pytest

from jobline import (
    AsyncClient,
    Backoff,
    Client,
    InvalidArgument,
    JobFilter,
    Middleware,
    QueueWeight,
    Retention,
    Worker,
    job,
)
from tests.client.live.either import connected

KINDS = pytest.mark.parametrize("kind", ["blocking", "async"])


@job("mail")
def welcome(payload: str) -> None:
    print(payload)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"timeout": -1}, "timeout: must be 0.001 s to 31,536,000 s, not -1"),
        ({"timeout": 0}, "timeout: must be 0.001 s to 31,536,000 s, not 0"),
        ({"timeout": "soon"}, "timeout: 'soon' is not a time span; write 90s, 5m, 1h30m or 2d"),
        (
            {"timeout": None},
            "timeout: None is not a time span; write seconds, a timedelta, or text such as '90s'",
        ),
        ({"timeout": float("inf")}, "timeout: must be 0.001 s to 31,536,000 s, not inf"),
        ({"timeout": float("nan")}, "timeout: must be 0.001 s to 31,536,000 s, not nan"),
        ({"buffer_jobs": 0}, "buffer_jobs: must be 1 or more, not 0"),
        ({"buffer_jobs": "9"}, "buffer_jobs: must be a whole number, not '9': write 9"),
        ({"buffer_bytes": 1.5}, "buffer_bytes: must be a whole number, not 1.5"),
        ({"middleware": 5}, "middleware: must be a list, not 5: write [5]"),
        ({"middleware": [5]}, "middleware: must be a list of PushMiddleware, not of 5"),
        ({"middleware": [Middleware()]}, "middleware: must be a list of PushMiddleware, not of <"),
        ({"credentials": "secret"}, "credentials: must be those of a channel, not of type str: "),
    ],
)
def test_a_client_refuses_a_wrong_setting(kind: Any, setting: dict[str, Any], said: str):
    """Where it is made, and not with each call."""
    with pytest.raises(InvalidArgument) as refused:
        kind("localhost:1", **setting)
    assert str(refused.value).startswith(said)
    assert refused.value.field == next(iter(setting))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"id": 5}, "id: must be text, not 5: write '5'"),
        ({"version": 1.2}, "version: must be text, not 1.2: write '1.2'"),
        (
            {"version": "a b c"},
            "version: must be 1 to 64 of A-Z a-z 0-9 . + _ -, the first a letter",
        ),
        ({"concurrency": True}, "concurrency: must be a whole number, not True"),
        ({"soft_stop": True}, "soft_stop: True is not a time span; write seconds"),
        ({"labels": {"a": 5}}, "labels: must be a mapping of text to text, not {'a': 5}"),
        ({"labels": ["a"]}, "labels: must be a mapping of text to text, not ['a']"),
        ({"soft_stop": -1}, "soft_stop: must be 0 s or more, not -1"),
        ({"hard_stop": -1}, "hard_stop: must be 0 s or more, not -1"),
        ({"cancel_grace": "-1s"}, "cancel_grace: '-1s' is not a time span; write 90s, 5m, 1h30m"),
        ({"lease": 0.1}, "lease: must be 1 s to 43,200 s, not 0.1"),
        ({"lease": "13h"}, "lease: must be 1 s to 43,200 s, not '13h'"),
        ({"window": -1}, "window: must be 0 to 100,000, not -1"),
        ({"window": 100_001}, "window: must be 0 to 100,000, not 100,001"),
        ({"window": "5"}, "window: must be a whole number, not '5': write 5"),
        ({"window_bytes": "64MiB"}, "window_bytes: must be a whole number, not '64MiB'"),
        ({"concurrency": 0}, "concurrency: must be 1 or more, not 0"),
        ({"threads": 2.0}, "threads: must be a whole number, not 2.0: write 2"),
        ({"queues": 5}, "queues is a list of names, or weights by name: [5]"),
        ({"queues": {"mail": 0}}, "queues['mail']: must be 1 to 1,000, not 0"),
        ({"middleware": [Middleware]}, "middleware: must be a list of Middleware, not of <class "),
        ({"jobs": welcome}, "jobs: must be a list"),
        ({"jobs": [print]}, "a worker runs declared jobs, not <built-in function print>"),
        ({"lifespan": 5}, "lifespan: must be a function that makes an async context manager"),
        ({"credentials": "secret"}, "credentials: must be those of a channel, not of type str"),
    ],
)
def test_a_worker_refuses_a_wrong_setting(setting: dict[str, Any], said: str):
    """Where it is made, and not when it runs, which may be in another process."""
    with pytest.raises(InvalidArgument) as refused:
        Worker("localhost:1", **setting)
    assert str(refused.value).startswith(said)


def test_the_edges_of_what_a_worker_takes():
    """A window of nothing, and times without an end."""
    endless = float("inf")
    Worker("localhost:1", window=0, lease="12h", soft_stop=endless, hard_stop=0, labels={"a": "b"})
    Worker("localhost:1", window=100_000, lease=1, queues={"mail": 1_000}, cancel_grace=endless)


def test_a_type_is_no_name_of_a_handler():
    """It would take the jobs of no name."""
    worker: Any = Worker("localhost:1")
    with pytest.raises(InvalidArgument, match=r"name: .* a type is given as payload="):
        worker.handler("mail", dict)(print)


@KINDS
@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("jobs.get", ("5",), "id: must be a whole number, not '5': write 5"),
        ("jobs.get", (1 << 70,), f"id: must be a whole number, not {1 << 70:,}, which is out of"),
        ("jobs.explain", (5.0,), "id: must be a whole number, not 5.0: write 5"),
        ("jobs.get_by_key", ("mail", 5), "key: must be text, not 5: write '5'"),
        ("queues.get", (5,), "queue: must be text, not 5: write '5'"),
        ("jobs.list", (5,), "list() takes words or a JobFilter, not 5"),
        ("jobs.cancel", (), "cancel() takes ids or a filter; for all of them give everything=True"),
        ("jobs.delete", (JobFilter(),), "delete() takes ids or a filter; for all of them give eve"),
        ("dead.purge", (), "purge() takes a filter; for all of them give everything=True"),
        ("pull", (5,), "queue: must be text, not 5: write '5'"),
        ("pull", (["a", "b"],), "queue: pull() takes queues one by one, not ['a', 'b']"),
        ("pull", (QueueWeight(5, 1),), "queue: must be text, not 5: write '5'"),  # type: ignore[arg-type]  # the slip
        ("ack", (5,), "a job in hand is what pull() has given, or its (id, delivery), not 5"),
        ("ack", ([(1, 2), (3, 4)],), "a job in hand is what pull() has given, or its (id,"),
    ],
)
async def test_a_call_refuses_a_wrong_argument(kind: str, path: str, given: Any, said: str):
    """Protobuf would say 'bad argument type for built-in operation'."""
    async with connected(kind, "127.0.0.1:1") as client:
        with pytest.raises(InvalidArgument) as refused:
            await client(path, *given)
    assert str(refused.value).startswith(said)


@KINDS
@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("push", {"job_key": 5}, "job_key: must be text, not 5: write '5'"),
        ("pull", {"names": "mail"}, "names: must be a list, not 'mail': write ['mail']"),
        ("pull", {"max_jobs": "3"}, "max_jobs: must be a whole number, not '3': write 3"),
        ("watch", {"queues": "mail"}, "queues: must be a list, not 'mail': write ['mail']"),
        ("watch", {"job_id": "5"}, "job_id: must be a whole number, not '5': write 5"),
        ("jobs.list", {"queue": 5}, "queue: must be text, not 5: write '5'"),
        ("dead.list", {"queue": 5}, "queue: must be text, not 5: write '5'"),
        ("queues.list", {"prefix": 5}, "name_prefix: must be text, not 5: write '5'"),
    ],
)
async def test_a_call_refuses_a_wrong_keyword(kind: str, path: str, given: Any, said: str):
    """Text in the place of a list would be taken letter by letter."""
    needed: dict[str, list[Any]] = {"pull": ["mail"], "push": ["mail", b"x"]}
    async with connected(kind, "127.0.0.1:1") as client:
        with pytest.raises(InvalidArgument) as refused:
            await client(path, *needed.get(path, []), **given)
    assert str(refused.value) == said


@KINDS
async def test_a_wait_and_an_update_refuse_a_wrong_argument(tiny, kind: str):
    """They are made into messages late, when the server is known."""
    async with connected(kind, tiny.address) as client:
        with pytest.raises(InvalidArgument, match="ids: must be a list of a whole number"):
            await client("wait", "5")
        with pytest.raises(InvalidArgument, match="max_waiting: must be a whole number, not 'x'"):
            await client("queues.update", "mail", max_waiting="x")
        with pytest.raises(InvalidArgument, match="rate: must be a RateLimit, not 5"):
            await client("queues.update", "mail", rate=5)
        with pytest.raises(InvalidArgument, match="rate: must be a RateLimit, not '60/1m'"):
            await client("limiters.upsert", "api", rate="60/1m")


@KINDS
async def test_the_longest_timeout(tiny, kind: str):
    """GRPC takes it; it ends calls without an end at once."""
    async with connected(kind, tiny.address, timeout="365d") as client:
        await client("push", "mail", b"x")
        assert len(await client("pull", "mail")) == 1


@KINDS
@pytest.mark.parametrize("call", ["push", "push_many", "push_payloads"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backoff": 5}, "options.backoff: must be a Backoff, not 5"),
        ({"retention": "1h"}, "options.retention: must be a Retention, not '1h'"),
        ({"options": 5}, "options: must be a JobOptions, not 5"),
        ({"options": {"priority": 5}}, "options: must be a JobOptions, not {'priority': 5}"),
        (
            {"run_at": 5},
            "run_at: 5 is not a moment; write an aware datetime, or text such as 20",
        ),
        ({"delay": "soon"}, "delay: 'soon' is not a time span; write 90s, 5m, 1h30m or 2d"),
        ({"ttl": "soon"}, "options.ttl: 'soon' is not a time span; write 90s, 5m, 1h30m or 2d"),
        ({"ttl": [1]}, "options.ttl: must not be a list: [1]"),
        ({"ttl": True}, "options.ttl: must be a number, not True"),
        ({"delay": True}, "delay: True is not a time span; write seconds"),
        ({"priority": True}, "options.priority: must be a number, not True"),
        ({"max_attempts": False}, "options.max_attempts: must be a number, not False"),
        ({"retention": Retention(count=True)}, "count: must be a whole number, not True"),
        ({"backoff": Backoff(jitter=True)}, "jitter: must be a number, not True"),
        ({"backoff": [1, 2]}, "options.backoff: must be a Backoff, not [1, 2]"),
        ({"delivery": "twice"}, "options.delivery: 'twice' is not one of at_least_once, once"),
        ({"phases": {"a"}}, "options.phases: must be a list, in order, not a set"),
        (
            {"on_dependency_failure": "fale"},
            "options.on_dependency_failure: 'fale' is not one of fail, cancel,",
        ),
    ],
)
async def test_a_push_that_cannot_be_made_is_definite(
    tiny, kind: str, call: str, given: dict[str, Any], said: str
):
    """Nothing was sent: it must not be called an unknown outcome."""
    async with connected(kind, tiny.address) as client:
        with pytest.raises(InvalidArgument) as refused:
            await client(call, "mail", b"x" if call == "push" else [b"x"], **given)
    assert str(refused.value).startswith(said)
    assert refused.value.definite


@KINDS
async def test_an_extend_refuses_a_wrong_progress(kind: str):
    async with connected(kind, "127.0.0.1:1") as client:
        with pytest.raises(InvalidArgument, match="progress: must be a number, not 'half'"):
            await client("extend", (1, 2), progress="half")
