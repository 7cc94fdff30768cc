"""Payloads are refused where their queue checks them and no connected worker could take them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.update import JobChange
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import Call
from jobline_server.engine.values import JobOptions, QueueSettings
from jobline_server.runtime.calls import payload_checks
from jobline_server.runtime.calls.payload_checks import CHECKED_PAYLOAD_BYTES_MAX
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.conftest import working

pytest.importorskip("jsonschema_rs", reason="the library that checks payloads is not installed")

NUMBER = '{"type":"integer"}'
TO = '{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}'


@pytest.fixture
async def checking(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime whose queue "mail" checks payloads, and a worker that takes numbers."""
    async with working(tmp_path, ManualClock()) as runtime:
        settings = QueueSettings(check_payloads=True)
        await runtime.queues.update_queue("mail", settings, None, Audit())
        announce(runtime, "first", NUMBER)
        yield runtime


def announce(runtime: Runtime, owner: str, schema: str, *, any_name: bool = False) -> None:
    name = "" if any_name else "send"
    handler = Handler("mail", name, schema, any_name=any_name)
    runtime.streams.handlers.add(owner, Open(Worker(), (("mail", 1),), (handler,)))


async def push(runtime: Runtime, *payloads: bytes, name: str = "send", queue: str = "mail") -> int:
    """Pushes plain payloads; returns how many were stored."""
    command = Push(queue, JobOptions(name=name), payloads=Payloads.of(list(payloads)))
    return (await runtime.pushes.push(command)).count


async def refusal(runtime: Runtime, command: Push) -> Refused:
    with pytest.raises(Refused) as caught:
        await runtime.pushes.push(command)
    return caught.value


async def test_payload_that_does_not_fit_is_refused_and_nothing_is_stored(
    checking: Runtime,
) -> None:
    """The message names the place in the schema, and nothing of the payload."""
    checking.streams.handlers.remove("first")
    announce(checking, "first", TO)
    payloads = Payloads.of([b'{"to":"a"}', b'{"to":["secret"]}'])
    refused = await refusal(checking, Push("mail", JobOptions(name="send"), payloads=payloads))
    assert (refused.kind, refused.field) == (RefusalKind.PAYLOAD_MISFIT, "payloads[1]")
    assert "/properties/to/type" in refused.message
    assert "secret" not in refused.message
    assert checking.queues.get_queue("mail").pushed_total == 0


async def test_an_update_is_checked_as_a_push_is(checking: Runtime) -> None:
    """Otherwise a job could become what no worker takes."""
    jobs = [NewJob(b"1", JobOptions(name="send")), NewJob(b'"x"', JobOptions(name="other"))]
    pushed = await checking.pushes.push(Push("mail", JobOptions(), rows=rows_of(jobs)))
    send, other = pushed.first_id, pushed.first_id + 1
    with pytest.raises(Refused) as caught:
        await checking.updates.update_job(send, JobChange(b'"secret"'))
    refused = caught.value
    assert (refused.kind, refused.field) == (RefusalKind.PAYLOAD_MISFIT, "payload")
    view = await checking.jobs.get_job(send)
    assert view.payload == b"1"
    assert (await checking.updates.update_job(send, JobChange(b"2"))).payload == b"2"
    await checking.updates.update_job(send, JobChange(priority=1))
    # Nobody says what that one takes.
    await checking.updates.update_job(other, JobChange(b'"y"'))
    settings = QueueSettings(check_payloads=False)
    await checking.queues.update_queue("mail", settings, None, Audit())
    assert (await checking.updates.update_job(send, JobChange(b'"y"'))).payload == b'"y"'


async def test_jobs_with_options_of_their_own_are_checked_by_their_names(
    checking: Runtime,
) -> None:
    send, other = JobOptions(name="send"), JobOptions(name="other")
    jobs = [NewJob(b'"x"', other), NewJob(b"1", send), NewJob(b'"x"', send)]
    refused = await refusal(checking, Push("mail", JobOptions(), rows=rows_of(jobs)))
    assert refused.field == "jobs[2].payload"
    stored = await checking.pushes.push(Push("mail", JobOptions(), rows=rows_of(jobs[:2])))
    assert stored.count == 2


@pytest.mark.parametrize("payload", [b"{", b"\xff", b"[" * 100_000, b'"x"', b""])
async def test_what_is_no_such_json_is_refused(checking: Runtime, payload: bytes) -> None:
    """No payload is null, which is no number."""
    command = Push("mail", JobOptions(name="send"), payloads=Payloads.of([payload]))
    assert (await refusal(checking, command)).kind is RefusalKind.PAYLOAD_MISFIT


async def test_payload_that_is_too_large_to_check_is_refused(checking: Runtime) -> None:
    payload = b"1" + b" " * CHECKED_PAYLOAD_BYTES_MAX
    command = Push("mail", JobOptions(name="send"), payloads=Payloads.of([payload]))
    assert (await refusal(checking, command)).kind is RefusalKind.TOO_LARGE
    assert await push(checking, payload, name="unknown") == 1


async def test_payload_may_fit_any_of_the_connected_versions(checking: Runtime) -> None:
    """While a new version is rolled out, producers of both versions go on."""
    announce(checking, "second", TO)
    assert await push(checking, b"1", b'{"to":"a"}') == 2
    checking.streams.handlers.remove("first")
    command = Push("mail", JobOptions(name="send"), payloads=Payloads.of([b"1"]))
    assert (await refusal(checking, command)).kind is RefusalKind.PAYLOAD_MISFIT


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "no JSON",
        '{"type":"nonsense"}',
        '{"$ref":"http://127.0.0.1:9/schema"}',
        '{"$ref":"file:///etc/passwd"}',
        '{"pattern":"(?=x)x"}',
        '{"pattern":"a{20000}"}',
        '{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}',
        json.dumps({"enum": [[number] for number in range(100)]}),
        "[" * 60_000,
    ],
)
async def test_worker_without_a_schema_of_use_takes_anything(
    checking: Runtime, schema: str
) -> None:
    """Nothing is fetched for a schema, and no pattern may take more than linear time."""
    announce(checking, "second", schema)
    assert await push(checking, b"anything") == 1


async def test_nothing_is_checked_where_no_worker_takes_the_name(checking: Runtime) -> None:
    assert await push(checking, b"anything", name="other") == 1
    checking.streams.handlers.remove("first")
    assert await push(checking, b"anything") == 1


async def test_handler_for_any_name_counts_where_no_other_takes_it(checking: Runtime) -> None:
    announce(checking, "second", TO, any_name=True)
    assert await push(checking, b"1") == 1
    command = Push("mail", JobOptions(name="other"), payloads=Payloads.of([b"1"]))
    assert (await refusal(checking, command)).kind is RefusalKind.PAYLOAD_MISFIT


async def test_queues_without_the_setting_are_not_looked_at(
    checking: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking.pushes.checks, "check", None)
    assert await push(checking, b"anything", queue="other") == 1


async def test_repeat_of_a_push_that_was_stored_is_no_misfit(checking: Runtime) -> None:
    """G5, G6: schemas changed since, and the first push is answered again."""
    named, payloads = JobOptions(name="send"), Payloads.of([b"1"])
    by_request = Push("mail", named, payloads=payloads, request_id=b"r", request_digest=1)
    by_call = Push("mail", named, payloads=payloads, calls=(Call(b"p" * 16, 1, 0, 1),))
    by_call = replace(by_call, call_jobs=(1,))
    by_key = Push("mail", named, rows=rows_of([NewJob(b"1", named, "key")]))
    first = [await checking.pushes.push(one) for one in (by_request, by_call, by_key)]
    checking.streams.handlers.remove("first")
    announce(checking, "second", TO)
    again = [await checking.pushes.push(one) for one in (by_request, by_call, by_key)]
    assert [one.first_id for one in again[:2]] == [one.first_id for one in first[:2]]
    assert again[2].exceptions[0][2] == first[2].first_id
    new = Push("mail", named, rows=rows_of([NewJob(b"1", named, "other key")]))
    assert (await refusal(checking, new)).kind is RefusalKind.PAYLOAD_MISFIT


async def test_many_payloads_are_checked_in_steps(
    checking: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_checks, "STEP_SECONDS", 0)
    steps = 0
    task = asyncio.ensure_future(push(checking, *[b"1"] * 9))
    while not task.done():
        steps += 1
        await asyncio.sleep(0)
    assert steps > 4
    assert task.result() == 9


async def test_a_payload_with_many_faults_is_refused_at_its_first(checking: Runtime) -> None:
    """All of them would take seconds to list."""
    checking.streams.handlers.remove("first")
    announce(checking, "first", '{"items":{"oneOf":[{"const":1},{"const":2}]}}')
    payload = json.dumps([3] * 80_000).encode()
    began = time.perf_counter()
    refused = await refusal(
        checking, Push("mail", JobOptions(name="send"), payloads=Payloads.of([payload]))
    )
    assert "/items/oneOf" in refused.message
    assert time.perf_counter() - began < 1


async def test_wide_schemas_check_smaller_payloads(checking: Runtime) -> None:
    checking.streams.handlers.remove("first")
    schema = {"items": {"anyOf": [{"minimum": number} for number in range(100)]}}
    announce(checking, "first", json.dumps(schema))
    assert await push(checking, json.dumps([200] * 1_000).encode()) == 1
    payload = json.dumps([200] * 30_000).encode()
    command = Push("mail", JobOptions(name="send"), payloads=Payloads.of([payload]))
    assert (await refusal(checking, command)).kind is RefusalKind.TOO_LARGE
    # As many more workers, each with a schema of its own: nobody tries them all.
    for number in range(10):
        announce(checking, f"other {number}", json.dumps(schema | {"title": str(number)}))
    assert await push(checking, payload) == 1


async def test_schemas_are_compiled_one_in_an_iteration(checking: Runtime) -> None:
    """Each may take some milliseconds, and a name may have a thousand."""
    for number in range(20):
        announce(checking, f"other {number}", json.dumps({"const": number}))
    compiled, most, before = checking.streams.handlers.schemas.compiled, 0, 0
    task = asyncio.ensure_future(push(checking, b"1"))
    while not task.done():
        most, before = max(most, len(compiled) - before), len(compiled)
        await asyncio.sleep(0)
    assert (task.result(), before, most) == (1, 21, 1)


async def test_schemas_of_a_name_that_take_too_much_together_check_nothing(
    checking: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Push("mail", JobOptions(name="send"), payloads=Payloads.of([b'"x"']))
    assert (await refusal(checking, command)).kind is RefusalKind.PAYLOAD_MISFIT
    announce(checking, "second", '{"type":"null"}')
    monkeypatch.setattr(payload_checks, "NAME_BYTES_MAX", 150 * len(NUMBER))
    assert await push(checking, b'"x"') == 1
