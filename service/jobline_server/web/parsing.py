"""h11's parser, with a bound on small pieces of a body and with counts of what was moved.

Each chunk of a chunked body is an event that takes some 25 µs, however small it is: a body of one
byte per chunk would stop the loop for a second with each block that is read from the socket.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import h11

# A request's line and headers together.
HEAD_BYTES_MAX = 16 << 10
# This many pieces of a body may be of any size; beyond that, they have this many bytes on average.
FREE_PIECES = 256
PIECE_BYTES_MIN = 512


class CountingConnection(h11.Connection):
    """The parser of one connection to the server. `on_reply` is called as a reply begins."""

    def __init__(self, on_reply: Callable[[], None]) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES_MAX)
        self._on_reply = on_reply
        self.replied_bytes = 0
        self._pieces = 0
        self._piece_bytes = 0

    def next_event(self) -> Any:
        """Returns the next event. Raises `RemoteProtocolError` for a body of too many pieces."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            # h11 raises it in a frame that it is a variable of: they would keep each other, and all
            # frames below.
            raise error.with_traceback(None) from None
        if isinstance(event, h11.Data):
            self._pieces += 1
            self._piece_bytes += len(event.data)
            if self._pieces > FREE_PIECES and self._piece_bytes < self._pieces * PIECE_BYTES_MIN:
                raise h11.RemoteProtocolError("a body of too many small chunks")
        elif isinstance(event, h11.Request):
            self._pieces = self._piece_bytes = 0
        return event

    def end(self) -> None:
        """Takes note that the connection was lost: no reply begins any more. Without this, parser
        and connection would hold each other until the next collection of old cycles.
        """
        self._on_reply = _nothing

    def send(self, event: Any) -> Any:
        """Returns the bytes of an event of the reply, and counts them."""
        sent = super().send(event)
        if isinstance(event, h11.Response):
            self._on_reply()
        self.replied_bytes += len(sent or b"")
        return sent


def _nothing() -> None:
    pass
