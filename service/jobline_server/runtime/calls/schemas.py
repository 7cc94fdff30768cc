"""The schemas that workers announce: one copy of each, while a stream is open that announced it.

Workers of one version announce the same, and a schema may have 64 KiB, so memory is bounded by the
different ones together. Schemas that have no room are left out: whoever announces many would else
keep other workers out. Payloads of such a handler are not checked, as of one that announces none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from sys import getsizeof

from jobline_server.dispatch.frames import Open
from jobline_server.engine import limits
from jobline_server.runtime.calls.compiled_schemas import CompiledSchemas
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# Workers may come and go as often as they like: at most one line in this time.
LOG_EVERY_MS = 60_000


class AnnouncedSchemas:
    """The schemas of all open streams, and by how many handlers each is announced. `held_bytes` is
    what they take in memory; `compiled` has those that payloads were checked against.
    """

    __slots__ = (
        "_log_from_ms",
        "_texts",
        "_unlogged",
        "_users",
        "compiled",
        "held_bytes",
    )

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._users: Counter[str] = Counter()
        self.compiled = CompiledSchemas()
        self.held_bytes = 0
        # When there may be a line again, and the schemas that were left out since the last one.
        self._log_from_ms = 0
        self._unlogged = 0

    def __len__(self) -> int:
        return len(self._texts)

    def shared(self, opened: Open, now_ms: int) -> Open:
        """Returns what a stream announces, with the copies of schemas that are here already, and
        without those that have no room. Call `add` for the result when it is open.
        """
        own = {text: self._texts.get(text, text) for text in _texts_of(opened)}
        if not own:
            return opened
        room, left_out = limits.SCHEMAS_BYTES_MAX - self.held_bytes, 0
        for text in own:
            size = 0 if text in self._texts else _bytes_of(text)
            if size > room:
                own[text], left_out = "", left_out + 1
            else:
                room -= size
        if left_out:
            self._log(opened.worker.id, left_out, now_ms)
        own[""] = ""
        handlers = [
            replace(
                handler,
                payload_schema=own[handler.payload_schema],
                result_schema=own[handler.result_schema],
            )
            for handler in opened.handlers
        ]
        return replace(opened, handlers=tuple(handlers))

    def _log(self, worker: str, left_out: int, now_ms: int) -> None:
        self._unlogged += left_out
        if now_ms < self._log_from_ms:
            return
        event = "schemas left out: those of all workers have no more room"
        LOG.warning(event, worker=worker, schemas=self._unlogged)
        self._log_from_ms, self._unlogged = now_ms + LOG_EVERY_MS, 0

    def add(self, opened: Open) -> None:
        """Keeps the schemas of a stream."""
        for text in _texts_of(opened):
            if text not in self._texts:
                self._texts[text] = text
                self.held_bytes += _bytes_of(text)
            self._users[text] += 1

    def remove(self, opened: Open) -> None:
        """Forgets the schemas of a stream that nobody else announces."""
        for text in _texts_of(opened):
            self._users[text] -= 1
            if not self._users[text]:
                del self._users[text], self._texts[text]
                self.held_bytes -= _bytes_of(text)
                self.compiled.forget(text)


def _texts_of(opened: Open) -> Iterator[str]:
    for handler in opened.handlers:
        if handler.payload_schema:
            yield handler.payload_schema
        if handler.result_schema:
            yield handler.result_schema


def _bytes_of(text: str) -> int:
    """Returns what a text takes in memory; one that is not ASCII also has its UTF-8 form there,
    once it was shown.
    """
    return getsizeof("") + len(text) if text.isascii() else 8 * len(text)
