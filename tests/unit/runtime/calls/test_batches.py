"""Calls on batches: where they are at home, lists, and cancels of many."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from jobline_server.engine.batches import Batch, BatchSpec, Callback
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.operations import Operation, OperationState
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, shard_of
from jobline_server.runtime.calls import batches
from jobline_server.runtime.calls.batches import BatchFilter
from jobline_server.runtime.calls.undoable import why_not
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.ended.test_many_ids import committed

T = TypeVar("T")
AUDIT = Audit("me", "wrong file", "CancelBatch", "{}", "o1")


async def done(runtime: Runtime, call: Coroutine[object, object, T]) -> T:
    """What a call returns whose commits go by themselves."""
    task = asyncio.ensure_future(call)
    await committed(runtime, task)
    return task.result()


async def created(runtime: Runtime, spec: BatchSpec) -> Batch:
    return await done(runtime, runtime.batches.create_batch(spec))


async def push(runtime: Runtime, batch: Batch, queue: str, count: int) -> None:
    options = replace(DEFAULT_OPTIONS, rules=replace(NO_RULES, batch_id=batch.id))
    payloads = Payloads.of([b"x"] * count)
    await runtime.pushes.push(Push(queue, options, payloads=payloads, level=AckLevel.BUFFERED))


async def test_batch_is_at_home_where_its_callback_goes(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock(), shards=4) as runtime:
        slots = runtime.core.slots
        then = Callback("then", 0, DEFAULT_OPTIONS)
        outer = await created(runtime, BatchSpec(on_success=then))
        assert shard_of(outer.id) == slots.number_of("then")
        assert outer.spec.on_success == replace(then, shard=slots.number_of("then"))
        assert shard_of((await created(runtime, BatchSpec(parent=outer.id))).id) == shard_of(
            outer.id
        )
        first = await created(runtime, BatchSpec(request_id="r"))
        assert await created(runtime, BatchSpec(request_id="r")) is first
        homes = {shard_of((await created(runtime, BatchSpec())).id) for _ in range(4)}
        assert homes == {0, 1, 2, 3}


async def test_list_goes_through_all_shards_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "STEP_BATCHES", 2)
    async with opened(tmp_path, ManualClock(), shards=2) as runtime:
        made = [await created(runtime, BatchSpec(f"n{at % 2}")) for at in range(10)]
        await done(runtime, runtime.batches.close_batch(made[0].id))
        found, after = [], 0
        while True:
            page, after = await runtime.batches.list_batches(
                BatchFilter(states=frozenset({(False, False)})), page_size=3, after=after
            )
            found += [batch.id for batch in page]
            if not after:
                break
        assert found == sorted(batch.id for batch in made[1:])


async def operation_of(runtime: Runtime, operation_id: str) -> Operation:
    view = await done(runtime, runtime.operations.get(operation_id))
    assert view is not None
    assert "its batches are closed" in why_not(view)
    return view.operation


async def test_a_cancel_is_an_operation(tmp_path: Path) -> None:
    """No undo takes it back: a batch that was cancelled stays closed."""
    async with opened(tmp_path, ManualClock(), shards=4) as runtime:
        batch = await created(runtime, BatchSpec())
        await push(runtime, batch, "a", 3)
        await done(runtime, runtime.batches.cancel_batch(batch.id, dry_run=False, audit=AUDIT))
        cancelled = await operation_of(runtime, "o1")
        assert (cancelled.batch_id, cancelled.count) == (batch.id, 3)
        assert cancelled.state is OperationState.DONE


async def test_a_cancel_that_is_cut_short_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its begin is in the commit that closes the batch."""
    async with opened(tmp_path, ManualClock()) as runtime:
        batch = await created(runtime, BatchSpec())

        async def cancel_members(*_: object, **__: object) -> None:
            raise asyncio.CancelledError

        monkeypatch.setattr(runtime.bulk, "cancel_members", cancel_members)
        call = runtime.batches.cancel_batch(batch.id, dry_run=False, audit=AUDIT)
        with pytest.raises(asyncio.CancelledError):
            await done(runtime, call)
        assert batch.cancelled_by == "me"
        view = await done(runtime, runtime.operations.get("o1"))
        assert view is not None
        assert view.operation.state is OperationState.INTERRUPTED


async def test_cancel_reaches_members_in_every_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "CANCEL_BATCHES", 1)
    async with opened(tmp_path, ManualClock(), shards=3) as runtime:
        outer = await created(runtime, BatchSpec())
        inner = await created(runtime, BatchSpec(parent=outer.id))
        for queue in "abcdef":
            await push(runtime, outer, queue, 2)
            await push(runtime, inner, queue, 1)
        assert (outer.total, inner.total) == (13, 6)
        cancel = runtime.batches.cancel_batch
        result, _ = await done(runtime, cancel(outer.id, dry_run=True, audit=AUDIT))
        assert (result.count, outer.cancelled_ms) == (18, 0)
        result, _ = await done(runtime, cancel(outer.id, dry_run=False, audit=AUDIT))
        assert (result.count, outer.cancelled_by, inner.cancel_reason) == (18, "me", "wrong file")
        again, _ = await done(runtime, cancel(outer.id, dry_run=False, audit=AUDIT))
        assert again.count == 0


@pytest.mark.parametrize("batch_id", [5, 99 << 43])
async def test_unknown_batches_are_refused(runtime: Runtime, batch_id: int) -> None:
    with pytest.raises(Refused) as caught:
        runtime.batches.get_batch(batch_id)
    assert caught.value.kind is RefusalKind.BATCH_NOT_FOUND
