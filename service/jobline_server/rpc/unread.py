"""Replies that the native transport has taken and that their callers have not read: how many, and
how many bytes.

It sends a reply as its caller reads, and tells nobody when it is done. But it counts the calls that
began and ended, and the bytes it sent: what was given to it and is not among those waits. To ask
takes a tenth of a millisecond, so it is asked only where the bounds seem to be reached.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from jobline_server.rpc.admission import Admission


class UnreadReplies:
    """Those of one native server. It is made when the server has its front, before that starts."""

    __slots__ = ("_admission", "_bytes", "_calls", "_front", "_given", "_server")

    def __init__(self, server: Any, admission: Admission) -> None:
        self._server = server
        self._front = server._front  # noqa: SLF001  # nothing public tells of replies
        self._admission = admission
        self._calls = 0
        self._bytes = 0
        # By path: bytes that were given to the front.
        self._given: Counter[str] = Counter()
        admission.recounts.append(self.recount)

    def add(self, call_id: int, size: int) -> None:
        """The front has taken a reply, which waits until the next count shows that it does not."""
        self._given[self._server._calls[call_id].method] += size  # noqa: SLF001  # as above
        self._calls += 1
        self._bytes += size
        self._admission.add_unread(1, size)

    def recount(self) -> None:
        """Counts what waits now."""
        in_hand = Counter(call.method for call in self._server._calls.values())  # noqa: SLF001  # as above
        calls = size = 0
        for path, told in self._front.metrics()["methods"].items():
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
