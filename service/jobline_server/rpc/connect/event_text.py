"""Writes the answers of a watch as server-sent events: an event of Jobline is the data of one, in
protobuf's JSON, and its id is the token to resume after it.

An answer is written once for all readers that get the same. A long one is written in pieces, each
when the reader has room for it: a push of a million jobs is a few columns in memory, and hundreds
of megabytes of text.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp

from jobline.v1.event_pb2 import EventRun
from jobline.v1.job_service_pb2 import WatchResponse
from jobline_server.rpc.connect.failures import error_of
from jobline_server.rpc.errors import Status

# Events of a piece; to write one takes a few µs.
EVENTS_AT_ONCE = 200
# Texts kept for other readers: those that keep up get the same answers within moments.
KEPT_BYTES_MAX = 4 << 20
# Of a text that is kept, beside itself and its answer.
KEPT_EXTRA_BYTES = 200


class EventText:
    """Writes answers; one writer for all readers of a port."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def pieces(self, answer: bytes) -> Iterator[bytes]:
        """Yields the text of a serialised `WatchResponse`, at least one piece."""
        kept = self._kept.get(answer)
        if kept is not None:
            yield kept
            return
        lines = _texts(WatchResponse.FromString(answer))
        piece = b"".join(islice(lines, EVENTS_AT_ONCE))
        following = b"".join(islice(lines, EVENTS_AT_ONCE))
        if not following:
            self._keep(answer, piece)
        yield piece
        while following:
            yield following
            following = b"".join(islice(lines, EVENTS_AT_ONCE))

    def _keep(self, answer: bytes, piece: bytes) -> None:
        self._kept[answer] = piece
        self._bytes += _size(answer, piece)
        while self._bytes > KEPT_BYTES_MAX:
            self._bytes -= _size(*self._kept.popitem(last=False))


def _size(answer: bytes, piece: bytes) -> int:
    return len(answer) + len(piece) + KEPT_EXTRA_BYTES


def error_text(status: Status) -> bytes:
    """Returns the last event of a stream that ends with a status."""
    return b"event: error\ndata: " + _dumped(error_of(status)) + b"\n\n"


def snapshot_text(body: bytes) -> bytes:
    """Returns the event of a part of a snapshot, of its JSON. It has no id: a reader that saw only
    some parts begins anew.
    """
    return b"event: snapshot\ndata: " + body + b"\n\n"


def _texts(response: WatchResponse) -> Iterator[bytes]:
    """Yields the text of each event."""
    for piece in response.events:
        # Of a job's result: these alone come as single events. They have no place among the others.
        yield b"data: " + _dumped(MessageToDict(piece)) + b"\n\n"
    for run in response.runs:
        id_line = f"id: {run.resume_token}+".encode()
        for number, data in enumerate(_data(run), start=1):
            yield b"%b%d\ndata: %b\n\n" % (id_line, number, data)
    if not response.runs and not response.events:
        # An event without data is none, but its id is remembered.
        yield b": ping\nid: " + response.resume_token.encode() + b"\n\n"


def _data(run: EventRun) -> Iterator[bytes]:
    """Yields the JSON of each event of a run, in order."""
    shared = MessageToDict(run.shared)
    if not run.starts:
        yield _dumped(shared)
        return
    counts: Sequence[int] = run.counts or [1] * len(run.starts)
    for index, (start, count) in enumerate(zip(run.starts, counts, strict=True)):
        body = _dumped(shared | _own(run, index))[:-1]
        for job_id in range(start, start + count):
            yield b'%b,"jobId":"%d"}' % (body, job_id)


def _own(run: EventRun, index: int) -> dict[str, Any]:
    """Returns what the events of one run of ids share, beside what all events share. As everywhere
    in protobuf's JSON, the default is left out.
    """
    own: dict[str, Any] = {}
    if run.names and run.names[index]:
        own["name"] = run.names[index]
    if run.deliveries and run.deliveries[index]:
        own["delivery"] = str(run.deliveries[index])
    if run.attempts and run.attempts[index]:
        own["attempt"] = run.attempts[index]
    if run.workers and run.workers[index]:
        own["worker"] = run.workers[index]
    if run.run_at_ms and run.run_at_ms[index]:
        at = Timestamp()
        at.FromMilliseconds(run.run_at_ms[index])
        own["runAt"] = at.ToJsonString()
    return own


def _dumped(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
