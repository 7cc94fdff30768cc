"""The drain of a session: asked for, sent on each stream, and confirmed on the newest. Pure.

The server confirms a drain with a settle that was sent in a later frame: that confirm comes behind
the last job. A stream that is half-closed before would have no way to give such a job back.
"""

from __future__ import annotations

from jobline._stream.settles import Settles
from jobline.v1 import job_service_pb2 as pb


class Draining:
    """Whether no more jobs are asked for, and how far the server knows."""

    def __init__(self) -> None:
        self.is_wanted = False
        self.is_confirmed = False
        self._is_sent = False
        self._fence: object | None = None

    def connect(self) -> None:
        """Begins a stream, which knows nothing of it."""
        self.is_confirmed = self._is_sent = False
        self._fence = None

    def put(self, frame: pb.StreamRequest) -> None:
        """Asks for it in a frame, once a stream."""
        if self.is_wanted and not self._is_sent:
            frame.drain = self._is_sent = True

    def ask(self, settles: Settles) -> None:
        """Has a settle confirm it that is sent after this; call before each frame is made."""
        if self._is_sent and self._fence is None:
            self._fence = fence = object()
            settles.fence(lambda: self._handle_confirmed(fence))

    def _handle_confirmed(self, fence: object) -> None:
        # That of an earlier stream says nothing of this one.
        self.is_confirmed = self.is_confirmed or fence is self._fence
