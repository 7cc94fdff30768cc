"""The rows of an outbox as a relay reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from jobline._new_job import NewJob
from jobline._options import JobOptions
from jobline._times import from_timestamp
from jobline.errors import InvalidArgument, JoblineError
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
    lock = " FOR UPDATE SKIP LOCKED" if tx.dialect == POSTGRESQL else ""
    others = f" AND queue NOT IN ({', '.join('?' * len(held))})" if held else ""
    found = tx.rows(
        f"SELECT id, queue, size FROM {table}"
        f" WHERE error IS NULL{others} ORDER BY id LIMIT ?{lock}",
        *held,
        count,
    )
    total = 0
    queues: dict[str, str] = {}
    for id_, queue, size in found:
        total += size
        if total > CALL_BYTES_MAX and queues:
            break
        queues[id_] = queue
    if not queues:
        return []
    marks = ", ".join("?" * len(queues))
    jobs = tx.rows(f"SELECT id, job FROM {table} WHERE id IN ({marks}) ORDER BY id", *queues)
    return [Row(id_, queues[id_], _job_of(id_, data)) for id_, data in jobs]


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
