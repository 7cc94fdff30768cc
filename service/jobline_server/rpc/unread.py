"""Replies that the native transport has taken and that their callers have not read: how many, and
how many bytes.

It sends a reply as its caller reads, and tells nobody when it is done. But it counts the calls that
began and ended, and the bytes it sent: what was given to it and is not among those waits. To ask
takes a tenth of a millisecond, so it is asked only where the bounds seem to be reached.
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
    """Those of one port: `in_hand` are its calls that are not answered yet."""

    __slots__ = ("_admission", "_bytes", "_calls", "_front", "_given", "_in_hand")

    def __init__(
        self, front: NativeGrpcFront, in_hand: Mapping[int, InHand], admission: Admission
    ) -> None:
        self._front = front
        self._in_hand = in_hand
        self._admission = admission
        self._calls = 0
        self._bytes = 0
        # By path: bytes that were given to the front.
        self._given: Counter[str] = Counter()
        admission.recounts.append(self.recount)

    def add(self, path: str, size: int) -> None:
        """The front has taken a reply, which waits until the next count shows that it does not."""
        self._given[path] += size
        self._calls += 1
        self._bytes += size
        self._admission.add_unread(1, size)

    def count(self) -> int:
        """How many calls wait now for their callers to read."""
        self.recount()
        return self._calls

    def recount(self) -> None:
        """Counts what waits now."""
        in_hand = Counter(call.path for call in self._in_hand.values())
        calls = size = 0
        for path, told in (self._front.metrics() or {})["methods"].items():
            ended = told["status"].values()
            sent = sum(of_code["sent"]["sum"] for of_code in ended)
            waiting = told["started"] - in_hand[path] - sum(of_code["count"] for of_code in ended)
            if waiting > 0:
                calls += waiting
                size += max(self._given[path] - sent, 0)
            else:
                # What was given in the moment in which its caller went was not sent, and is gone.
                self._given[path] = sent
        self._admission.add_unread(calls - self._calls, size - self._bytes)
        self._calls, self._bytes = calls, size
