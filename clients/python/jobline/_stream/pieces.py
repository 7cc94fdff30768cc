"""Pieces of results to send. Pure.

They go out in order with the next frames, before the outcome of their job. Nothing confirms them:
those that were sent on a connection that broke may be lost. Of a job that makes them faster than
they can be sent, the oldest are dropped, as the server would drop them.
"""

from __future__ import annotations

from collections import deque

from jobline.v1 import job_service_pb2 as pb

# What the server keeps of a job; a piece counts as its bytes and about what it takes besides.
PIECES_BYTES_MAX = 1 << 20
PIECE_EXTRA_BYTES = 100
# What one frame carries.
FRAME_BYTES_MAX = 1 << 20
FRAME_PIECES_MAX = 1_000


class _Waiting:
    """The pieces of one lease, with their size in bytes."""

    __slots__ = ("pieces", "size")

    def __init__(self) -> None:
        self.pieces: deque[bytes] = deque()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.pieces.append(data)
        self.size += len(data) + PIECE_EXTRA_BYTES
        while self.size > PIECES_BYTES_MAX:
            self.pop()

    def pop(self) -> bytes:
        data = self.pieces.popleft()
        self.size -= len(data) + PIECE_EXTRA_BYTES
        return data


class Pieces:
    """Holds the pieces of one session that were not sent, by lease."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def __bool__(self) -> bool:
        """Returns whether a piece waits to be sent."""
        return bool(self._waiting)

    def add(self, id_: int, delivery: int, data: bytes) -> None:
        """Adds a piece of a job."""
        waiting = self._waiting.get((id_, delivery))
        if waiting is None:
            waiting = self._waiting[id_, delivery] = _Waiting()
        waiting.add(data)

    def take(self) -> list[pb.ExtendItem]:
        """Removes and returns as many pieces as one frame may carry."""
        items: list[pb.ExtendItem] = []
        size = 0
        while self._waiting and size < FRAME_BYTES_MAX and len(items) < FRAME_PIECES_MAX:
            (id_, delivery), waiting = next(iter(self._waiting.items()))
            data = waiting.pop()
            if not waiting.pieces:
                del self._waiting[id_, delivery]
            size += len(data)
            items.append(pb.ExtendItem(id=id_, delivery=delivery, partial=data))
        return items

    def forget(self, id_: int) -> None:
        """Drops the pieces of a job whose lease is lost."""
        for lease in [lease for lease in self._waiting if lease[0] == id_]:
            del self._waiting[lease]

    def clear(self) -> None:
        """Drops all pieces, because the server refused one."""
        self._waiting.clear()
