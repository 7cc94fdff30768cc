"""Pieces of results: the last ones are kept, readers keep their place, and nothing stays behind."""

from __future__ import annotations

import asyncio

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem
from jobline_server.engine.values import SettleOutcome
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch import partials as module
from jobline_server.runtime.watch.partials import NUMBER_BITS, PartialReader, Partials, Piece
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.ended.test_many_ids import committed
from tests.unit.runtime.watch.test_waits import delete, delete_queue, push

BASE = 3 << NUMBER_BITS


@pytest.fixture
def partials() -> Partials:
    return Partials(3)


def reader_of(partials: Partials, *ids: int) -> tuple[PartialReader, list[None]]:
    """A reader, and the times that it was told of more."""
    told: list[None] = []
    return partials.read(ids, lambda: told.append(None)), told


def taken(reader: PartialReader) -> list[tuple[int, int, bytes]]:
    """Job, number within this life and piece of all that a reader gets now."""
    found: list[tuple[int, int, bytes]] = []
    while pieces := reader.take():
        found += [(piece.job_id, piece.number - BASE, piece.data) for piece in pieces]
    return found


def test_reader_gets_what_was_sent_before_and_what_comes(partials: Partials) -> None:
    """Each piece once, in order, of its jobs alone."""
    partials.add(1, 7, b"a")
    partials.add(2, 7, b"other")
    reader, told = reader_of(partials, 1)
    assert taken(reader) == [(1, 1, b"a")]
    assert taken(reader) == []
    partials.add(1, 7, b"b")
    partials.add(1, 7, b"c")
    partials.add(2, 7, b"other")
    assert len(told) == 2
    assert taken(reader) == [(1, 2, b"b"), (1, 3, b"c")]
    assert reader.take() == []


def test_numbers_begin_above_those_of_an_earlier_life(partials: Partials) -> None:
    """A worker that outlives the server goes on under the same delivery."""
    reader, _ = reader_of(partials, 1)
    partials.add(1, 7, b"a")
    assert reader.take() == [Piece(1, 7, BASE + 1, b"a")]
    assert BASE > (2 << NUMBER_BITS) + 1_000_000


def test_another_delivery_begins_anew(partials: Partials) -> None:
    """What the attempt before sent is gone."""
    reader, _ = reader_of(partials, 1)
    partials.add(1, 7, b"a")
    assert taken(reader) == [(1, 1, b"a")]
    partials.add(1, 8, b"A")
    assert [(piece.delivery, piece.number - BASE) for piece in reader.take()] == [(8, 1)]
    assert partials.bytes == 1 + limits.PARTIAL_EXTRA_BYTES


def test_slow_reader_sees_by_the_numbers_what_it_missed(partials: Partials) -> None:
    reader, _ = reader_of(partials, 1)
    data = b"x" * limits.PARTIAL_BYTES_MAX
    partials.add(1, 7, b"first")
    assert taken(reader) == [(1, 1, b"first")]
    for _ in range(40):
        partials.add(1, 7, data)
    numbers = [number for _, number, _ in taken(reader)]
    assert numbers == list(range(41 - len(numbers) + 1, 42))
    assert len(numbers) == limits.PARTIALS_JOB_BYTES_MAX // (len(data) + limits.PARTIAL_EXTRA_BYTES)
    assert partials.bytes <= limits.PARTIALS_JOB_BYTES_MAX


def test_reader_takes_about_as_much_as_it_can_write(
    partials: Partials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many jobs in turn, and never nothing."""
    monkeypatch.setattr(module, "READ_BYTES", 1)
    reader, _ = reader_of(partials, 1, 2)
    for job_id in (1, 2):
        partials.add(job_id, 7, b"abc")
        partials.add(job_id, 7, b"def")
    parts = [reader.take() for _ in range(5)]
    assert [[piece.data for piece in part] for part in parts] == [[b"abc"], [b"def"]] * 2 + [[]]


def test_all_jobs_together_have_a_limit(
    partials: Partials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that was silent for the longest time loses its pieces first; its numbers go on."""
    monkeypatch.setattr(limits, "PARTIALS_BYTES_MAX", 3 * (1 + limits.PARTIAL_EXTRA_BYTES))
    reader, _ = reader_of(partials, 1)
    for job_id in (1, 1, 2, 3):
        partials.add(job_id, 7, b"x")
    assert taken(reader) == [(1, 2, b"x")]
    partials.add(3, 7, b"y")
    assert taken(reader) == []
    partials.add(1, 7, b"z")
    assert taken(reader) == [(1, 3, b"z")]
    assert partials.bytes <= limits.PARTIALS_BYTES_MAX


def test_pieces_of_a_lease_that_is_lost_are_dropped(partials: Partials) -> None:
    """Those of a job that is to stop still count: it is held."""
    items = [ExtendItem(job_id, 7, partial=b"x") for job_id in range(1, 4)]
    items.append(ExtendItem(4, 7))
    partials.take(items, [(0, SettleOutcome.LEASE_LOST), (1, SettleOutcome.CANCELLED)])
    assert [job_id for job_id in range(1, 5) if partials.find(job_id)] == [2, 3]


async def test_pieces_go_with_their_jobs(runtime: Runtime) -> None:
    """Members of a lot, single jobs and those of a deleted queue, unless somebody reads them."""
    ids = await push(runtime, 4)
    (run,) = (await a_pull(runtime)).runs
    partials = runtime.waits.partials
    for job_id in ids:
        partials.add(job_id, run.delivery, b"x")
    reader, _ = reader_of(partials, ids[1])
    ack = runtime.settle_calls.ack([ids[0], ids[1]], [run.delivery] * 2, {})
    await committed(runtime, asyncio.ensure_future(ack))
    assert [job_id for job_id in ids if partials.find(job_id)] == ids[1:]
    assert [piece.data for piece in reader.take()] == [b"x"]
    reader.close()
    reader.close()
    assert [job_id for job_id in ids if partials.find(job_id)] == ids[2:]
    await committed(runtime, asyncio.ensure_future(delete_queue(runtime, ids)))
    assert (len(partials), partials.bytes) == (0, 0)


async def test_pieces_of_many_jobs_are_found_among_few(runtime: Runtime) -> None:
    """A run is longer than what is kept."""
    ids = await push(runtime, 9)
    (run,) = (await a_pull(runtime)).runs
    runtime.waits.partials.add(ids[3], run.delivery, b"x")
    ack = runtime.settle_calls.ack(ids, [run.delivery] * 9, {})
    await committed(runtime, asyncio.ensure_future(ack))
    assert (len(runtime.waits.partials), runtime.waits.partials.bytes) == (0, 0)


async def test_deleted_jobs_leave_no_pieces(runtime: Runtime) -> None:
    """They wait for a retry."""
    ids = await push(runtime, 2)
    for job_id in ids:
        runtime.waits.partials.add(job_id, 7, b"x")
    await committed(runtime, asyncio.ensure_future(delete(runtime, ids[:1])))
    assert len(runtime.waits.partials) == 1


async def test_wait_yields_pieces_before_the_end_of_their_job(runtime: Runtime) -> None:
    (job_id,) = await push(runtime, 1)
    (run,) = (await a_pull(runtime)).runs
    seen: list[object] = []

    async def wait() -> None:
        async for part in runtime.waits.wait([job_id], 60_000, partials=True):
            seen.extend(part)

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    extends = [ExtendItem(job_id, run.delivery, partial=data) for data in (b"a", b"b")]
    runtime.settles.extend(extends)
    ack = runtime.settle_calls.ack([job_id], [run.delivery], {})
    await committed(runtime, asyncio.ensure_future(ack))
    async with asyncio.timeout(5):
        await waiting
    assert [one.data for one in seen if isinstance(one, Piece)] == [b"a", b"b"]
    assert len(seen) == 3
    assert not isinstance(seen[2], Piece)
    assert len(runtime.waits.partials) == 0
