"""Counts the replies, and their bytes, that the native transport has taken and callers have not
read.

The transport sends a reply as the caller reads, and does not report when it is done. But it counts
the calls that began and ended, and the bytes it sent; replies given to it beyond those are unread.
To read its counts takes a tenth of a millisecond, so that is done only where a bound seems reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from pygrpc_native import NativeGrpcFront

from jobline_server.rpc.admission import Admission


class InHand(Protocol):
    """A call that is not answered yet."""

    path: str


class UnreadReplies:
    """Counts for one port; `in_hand` are its calls that are not answered yet."""

    __slots__ = ("_admission", "_bytes", "_calls", "_front", "_given", "_in_hand")

    def __init__(
        self, front: NativeGrpcFront, in_hand: Mapping[int, InHand], admission: Admission
    ) -> None:
        self._front = front
        self._in_hand = in_hand
        self._admission = admission
        self._calls = 0
        self._bytes = 0
        # Bytes given to the front, by path.
        self._given: Counter[str] = Counter()
        admission.recounts.append(self.recount)

    def add(self, path: str, size: int) -> None:
        """Counts a reply that the front has taken as unread, until the next recount."""
        self._given[path] += size
        self._calls += 1
        self._bytes += size
        self._admission.add_unread(1, size)

    def count(self) -> int:
        """Recounts; returns how many replies are unread."""
        self.recount()
        return self._calls

    def recount(self) -> None:
        """Recounts the unread replies and their bytes."""
        in_hand = Counter(call.path for call in self._in_hand.values())
        calls = size = 0
        for path, counts in (self._front.metrics() or {})["methods"].items():
            ended = counts["status"].values()
            sent = sum(of_code["sent"]["sum"] for of_code in ended)
            waiting = counts["started"] - in_hand[path] - sum(of_code["count"] for of_code in ended)
            if waiting > 0:
                calls += waiting
                size += max(self._given[path] - sent, 0)
            else:
                # A reply given just as its caller disconnected was dropped without being sent.
                self._given[path] = sent
        self._admission.add_unread(calls - self._calls, size - self._bytes)
        self._calls, self._bytes = calls, size
