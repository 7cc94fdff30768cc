"""The rows of an outbox as a relay reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from jobline._new_job import NewJob
from jobline._options import JobOptions
from jobline._times import from_timestamp
from jobline.errors import InvalidArgument, JoblineError
from jobline.outbox._tables import WAITING_QUEUES, has_index
from jobline.outbox._transactions import POSTGRESQL, Transaction
from jobline.v1 import job_pb2

# The bytes of the jobs of a call, well below the server's 16 MiB unless one alone is larger.
CALL_BYTES_MAX = 8 << 20


class Row(NamedTuple):
    """A row, and its job; or why no job can be made of it."""

    id: str
    queue: str
    job: NewJob | JoblineError


def rows_of(tx: Transaction, table: str, held: Sequence[str], count: int) -> list[Row]:
    """Returns the first rows but for those of `held` queues, and locks them where the database
    passes over those of others.
    """
    found = _by_queue if has_index(tx, table) else _by_id
    total = 0
    queues: dict[str, str] = {}
    for id_, queue, size in found(tx, table, held, count):
        total += size
        if total > CALL_BYTES_MAX and queues:
            break
        queues[id_] = queue
    if not queues:
        return []
    marks = ", ".join("?" * len(queues))
    jobs = tx.rows(f"SELECT id, job FROM {table} WHERE id IN ({marks}) ORDER BY id", *queues)
    return [Row(id_, queues[id_], _job_of(id_, data)) for id_, data in jobs]


def _by_queue(
    tx: Transaction, table: str, held: Sequence[str], count: int
) -> Iterator[tuple[str, str, int]]:
    """Yields id, queue and size of up to `count` rows; the queue whose first row is the oldest
    comes first. By the index that costs a step for each queue, and none for rows of held ones.
    """
    waiting = WAITING_QUEUES.format(table=table)
    for (queue,) in tx.rows(f"{waiting} SELECT queue FROM waiting ORDER BY first_id"):
        if queue in held:
            continue
        found = tx.rows(
            f"SELECT id, queue, size FROM {table}"
            f" WHERE error IS NULL AND queue = ? ORDER BY id LIMIT ?{_lock_of(tx)}",
            *(queue, count),
        )
        yield from found
        count -= len(found)
        if not count:
            return


def _by_id(
    tx: Transaction, table: str, held: Sequence[str], count: int
) -> Iterator[tuple[str, str, int]]:
    """Yields id, queue and size of the first `count` rows, of a table without the index."""
    others = f" AND queue NOT IN ({', '.join('?' * len(held))})" if held else ""
    yield from tx.rows(
        f"SELECT id, queue, size FROM {table}"
        f" WHERE error IS NULL{others} ORDER BY id LIMIT ?{_lock_of(tx)}",
        *held,
        count,
    )


def _lock_of(tx: Transaction) -> str:
    return " FOR UPDATE SKIP LOCKED" if tx.dialect == POSTGRESQL else ""


def _job_of(id_: str, data: object) -> NewJob | JoblineError:
    """Returns the job of a row, with the id of the row as its key."""
    if not isinstance(data, bytes | bytearray | memoryview):
        return InvalidArgument(f"its job cannot be read: it is {type(data).__name__}, not bytes")
    try:
        message = job_pb2.NewJob.FromString(bytes(data))
        return NewJob(
            message.data,
            options=JobOptions.from_message(message.options)
            if message.HasField("options")
            else None,
            job_key=id_,
            run_at=from_timestamp(message.run_at) if message.HasField("run_at") else None,
            unique_key=message.options.unique_key or None,
        )
    except (DecodeError, ValueError, OverflowError, TypeError, JoblineError) as error:
        return InvalidArgument(f"its job cannot be read: {error}")
