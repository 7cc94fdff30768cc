"""Serialises events, once for all watchers that get the same.

A run of events is written as columns, or as single events for watchers that take no runs. The
events of a run differ in their ids; the rest is serialised once and copied.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from jobline.v1 import event_pb2, job_service_pb2
from jobline_server.engine.values import shard_of
from jobline_server.runtime.watch.feed_reader import Answer, Part
from jobline_server.runtime.watch.partials import Piece
from jobline_server.wire.event_runs import EventRun
from jobline_server.wire.events import fill_event, run_message
from jobline_server.wire.raw_fields import VARINT, tag_of, varint
from jobline_server.wire.times import fill_time

# Bytes kept for other watchers: those that keep up get the same events within moments.
KEPT_BYTES_MAX = 8 << 20
# The ids of an aligned block of this size share all but the first byte of their varints.
_BLOCK = 128
_LOW_BITS = [bytes([bits | 0x80]) for bits in range(_BLOCK)]

_RESPONSE = job_service_pb2.WatchResponse.DESCRIPTOR
_EVENTS_TAG = tag_of(_RESPONSE, "events")
_RUNS_TAG = tag_of(_RESPONSE, "runs")
_TOKEN_TAG = tag_of(_RESPONSE, "resume_token")
_BEGUN_TAG = tag_of(event_pb2.EventRun.DESCRIPTOR, "resume_token")
_ID_TAG = tag_of(event_pb2.Event.DESCRIPTOR, "job_id", VARINT)


class EventWriter:
    """Serialises the replies to watchers; one writer for all watchers of a server."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int, int], bytes] = OrderedDict()
        self._bytes = 0

    def response(self, answer: Answer, *, as_runs: bool) -> bytes:
        """Returns a serialised `WatchResponse`."""
        token = answer.token.encode()
        write = self._run_field if as_runs else self._event_fields
        fields = [write(part) for part in answer.parts]
        fields += map(_piece_field, answer.pieces)
        return b"".join((*fields, _TOKEN_TAG, varint(len(token)), token))

    def _run_field(self, part: Part) -> bytes:
        """Returns a run, then the token of its start, which may differ from watcher to watcher."""
        run, begun = part.run, part.begun.encode()
        if part.count != run.total:
            body = run_message(run.part(part.skip, part.count)).SerializeToString()
        else:
            body = self._find((*part.key, -1)) or self._keep(
                (*part.key, -1), run_message(run).SerializeToString()
            )
        token = _BEGUN_TAG + varint(len(begun)) + begun
        return b"".join((_RUNS_TAG, varint(len(body) + len(token)), body, token))

    def _event_fields(self, part: Part) -> bytes:
        key = (*part.key, part.skip)
        if part.count == 1:
            # For a watcher of one job; no other watcher gets this event alone.
            return b"".join(_rows(part.run.part(part.skip, 1)))
        kept = self._find(key)
        if kept is not None:
            return kept
        return self._keep(key, b"".join(_rows(part.run.part(part.skip, part.count))))

    def _find(self, key: tuple[int, int, int]) -> bytes | None:
        return self._kept.get(key)

    def _keep(self, key: tuple[int, int, int], written: bytes) -> bytes:
        self._kept[key] = written
        self._bytes += len(written)
        while self._bytes > KEPT_BYTES_MAX:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest)
        return written


def _piece_field(piece: Piece) -> bytes:
    event = event_pb2.Event(
        shard=shard_of(piece.job_id),
        kind=event_pb2.EVENT_KIND_PARTIAL,
        job_id=piece.job_id,
        delivery=piece.delivery,
        partial=piece.data,
        partial_number=piece.number,
    ).SerializeToString()
    return _EVENTS_TAG + varint(len(event)) + event


def _rows(run: EventRun) -> Iterator[bytes]:
    """Yields the fields of a run's events."""
    message = event_pb2.Event()
    fill_event(message, run.shared)
    shared = message.SerializeToString()
    if not run.starts:
        yield b"".join((_EVENTS_TAG, varint(len(shared)), shared))
        return
    has_columns = any(run.columns)
    for index, (start, count) in enumerate(zip(run.starts, run.counts, strict=True)):
        body = shared + _column_fields(run, index) + _ID_TAG if has_columns else shared + _ID_TAG
        if count == 1:
            job_id = varint(start)
            yield b"".join((_EVENTS_TAG, varint(len(body) + len(job_id)), body, job_id))
        else:
            yield from _neighbours(body, start, start + count)


def _column_fields(run: EventRun, index: int) -> bytes:
    """Returns the fields of one run of ids. Appended to the shared fields, they override them."""
    columns, message = run.columns, event_pb2.Event()
    if columns.names:
        message.name = columns.names[index]
    if columns.deliveries:
        message.delivery = columns.deliveries[index]
    if columns.attempts:
        message.attempt = columns.attempts[index]
    if columns.workers:
        message.worker = columns.workers[index]
    if columns.run_at_ms and columns.run_at_ms[index]:
        fill_time(message.run_at, columns.run_at_ms[index])
    return message.SerializeToString()


def _neighbours(body: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yields events with consecutive ids, a block of ids at a time."""
    while start < end:
        stop = min(end, start + _BLOCK - start % _BLOCK)
        if start < _BLOCK:
            ids = [varint(job_id) for job_id in range(start, stop)]
            high = b""
        else:
            ids = _LOW_BITS[start % _BLOCK : start % _BLOCK + stop - start]
            high = varint(start)[1:]
        head = b"".join((_EVENTS_TAG, varint(len(body) + 1 + len(high)), body))
        yield b"".join([head + low + high for low in ids])
        start = stop
