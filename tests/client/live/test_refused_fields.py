"""Refusals name the field that a caller has set, however the client sent it; on the real server."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from jobline import (
    InvalidArgument,
    JoblineError,
    PushMiddleware,
    PushOutcome,
    UniqueKeyHeld,
)
from tests.client.live.either import connected

CREATED, DUPLICATE = PushOutcome.CREATED, PushOutcome.DUPLICATE


@pytest.fixture
def queue():
    """A queue of this test's own."""
    return f"q-{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"group": "g" * 257}, "jobs[0].options.group"),
        ({"group": "g", "priority": 1}, "options.priority"),
        ({"unique_key": "u" * 257}, "jobs[0].options.unique_key"),
        ({"job_key": "k" * 257}, "jobs[0].job_key"),
        ({"attempt_timeout": 0.5}, "options.attempt_timeout"),
        ({"unique_mode": "replace"}, "options.unique_mode"),
        ({"unique_key": "u", "unique_mode": "debounce"}, "options.unique_mode"),
        ({"on_dead_head": "hold"}, "options.on_dead_head"),
        ({"depends_on": [1]}, "options.depends_on"),
        ({"limiters": ["nowhere"]}, "options.limiters"),
    ],
)
async def test_a_single_push(client: Any, queue: str, given: dict[str, Any], field: str) -> None:
    with pytest.raises(JoblineError) as refused:
        await client("push", queue, b"x", **given)
    assert refused.value.field == field
    if field != "options.depends_on":
        assert str(refused.value).startswith((f"{field}: ", "there is no limiter"))
    assert not await client("jobs.list", queue=queue)


async def test_a_push_is_refused_whatever_it_would_share_a_call_with(
    client: Any, queue: str
) -> None:
    """The server takes an option that serves one of the jobs of a call."""
    pushes = [
        client("push", queue, b"x", unique_mode="replace", **own)
        for own in ({"unique_key": "u"}, {}, {"unique_key": "v"})
    ]
    told = await asyncio.gather(*pushes, return_exceptions=True)
    assert [getattr(one, "outcome", None) for one in told] == [CREATED, None, CREATED]
    assert str(told[1]) == "options.unique_mode: needs a unique_key"
    with pytest.raises(InvalidArgument, match=r"^options\.sticky: needs a group"):
        await client("push", queue, b"x", sticky=True)


async def test_payloads_have_groups_in_a_column(client: Any, queue: str) -> None:
    lot = await client(
        "push_payloads", queue, [b"1", b"2", b"3"], groups=["a", None, "b"], max_attempts=1
    )
    shown = [await client("jobs.get", job_id) for job_id in lot.ids]
    assert [job.options.group for job in shown] == ["a", None, "b"]
    assert (lot.count, lot.outcomes) == (3, ())
    with pytest.raises(InvalidArgument, match="must be as many as payloads"):
        await client("push_payloads", queue, [b"1"], groups=["a", "b"])
    with pytest.raises(InvalidArgument, match=r"^groups\[1\]: must be text, not 5"):
        await client("push_payloads", queue, [b"1", b"2"], groups=["a", 5])


@pytest.mark.parametrize("middleware", [(), (PushMiddleware(),)])
@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_payloads_have_unique_keys_in_a_column(
    server: Any, queue: str, kind: str, middleware: Any
) -> None:
    """What was held is told, and its id stands where its payload did."""
    async with connected(kind, server.address, middleware=list(middleware)) as client:
        first = await client("push", queue, b"0", unique_key="a")
        lot = await client("push_payloads", queue, [b"1", b"2"], unique_keys=["a", "b"])
        assert [each.outcome for each in lot.outcomes] == [DUPLICATE, CREATED]
        assert list(lot.ids) == [first.id, lot.first_id]
        assert lot.count == 1
        with pytest.raises(UniqueKeyHeld) as refused:
            await client("push_payloads", queue, [b"1"], unique_keys=["a"], unique_mode="reject")
        assert refused.value.field in {"unique_keys[0]", "jobs[0].options.unique_key"}
