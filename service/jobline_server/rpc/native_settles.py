"""Calls of the native transport that are never refused: settles, as what they end makes room, and
health, as a supervisor that hears nothing would end the server.

They have a line and places of their own: else any number of them would keep all others from
beginning. Few of them begin in an iteration of the loop, which others wait for: what a settle costs
is its ids. And connections take turns, of so many bytes each, so that who sends thousands, or many
ids, keeps none waiting but its own. By TLS and through a Unix socket all are one connection here.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from jobline_server.rpc.native_calls import Serve, Waiting
from jobline_server.rpc.native_lines import PLACES, Line

# So many begin in an iteration, and no more once they have so many bytes: an id has nine, and takes
# up to twelve microseconds.
AT_ONCE, BYTES_AT_ONCE = 16, 2_048
# The turn of a connection; a call counts as some bytes more.
TURN_BYTES, CALL_BYTES = 2_048, 32
# They count for longer than others: they do not wait for jobs, but many ids take long.
COUNTED_SECONDS = 5.0


class Turns(OrderedDict[str, "deque[Waiting]"]):
    """Calls that wait, by connection: some of each in turn."""

    def __init__(self) -> None:
        super().__init__()
        # The bytes that the connection whose turn it is has had.
        self._had = 0

    def append(self, one: Waiting, /) -> None:
        """Adds a call behind those of its connection."""
        self.setdefault(one.call.peer(), deque()).append(one)

    def popleft(self) -> Waiting:
        """Removes and returns the next; raises StopIteration without any."""
        peer, own = next(iter(self.items()))
        one = own.popleft()
        self._had += len(one.raw) + CALL_BYTES
        if own and self._had < TURN_BYTES:
            return one
        self._had = 0
        if own:
            self.move_to_end(peer)
        else:
            del self[peer]
        return one


class SettleLine(Line):
    """The line of one kind of them."""

    counted_seconds = COUNTED_SECONDS

    __slots__ = ()

    def __init__(self, serve: Serve, now: Callable[[], float]) -> None:
        super().__init__(PLACES, AT_ONCE, serve, now)
        self.waiting = Turns()

    def _some(self, count: int) -> list[Waiting]:
        """Removes up to `count` calls, or fewer that have many bytes."""
        found, room = list[Waiting](), BYTES_AT_ONCE
        while self._count and len(found) < count and room > 0:
            one = self._next(1)
            found += one
            room -= sum([len(each.raw) for each in one])
        return found
