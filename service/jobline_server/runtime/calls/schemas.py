"""The schemas that workers announce: one copy of each, while a stream is open that announced it.

Workers of one version announce the same, and a schema may have 64 KiB, so memory is bounded by the
different ones together. A stream that has no room for its schemas is refused before anything of it
is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from sys import getsizeof

from jobline_server.dispatch.frames import Open
from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.calls.compiled_schemas import CompiledSchemas

RETRY_AFTER_MS = 10_000


class AnnouncedSchemas:
    """The schemas of all open streams, and by how many handlers each is announced. `held_bytes` is
    what they take in memory; `compiled` has those that payloads were checked against.
    """

    __slots__ = ("_texts", "_users", "compiled", "held_bytes")

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._users: Counter[str] = Counter()
        self.compiled = CompiledSchemas()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._texts)

    def shared(self, opened: Open) -> Open:
        """Returns what a stream announces, with the copies of schemas that are here already. Raises
        `Refused` if there is no room for the others. Call `add` for the result when it is open.
        """
        own = {text: self._texts.get(text, text) for text in _texts_of(opened)}
        if not own:
            return opened
        new_bytes = sum([_bytes_of(text) for text in own if text not in self._texts])
        if new_bytes and self.held_bytes + new_bytes > limits.SCHEMAS_BYTES_MAX:
            raise Refused(
                RefusalKind.TOO_MANY_CALLS,
                f"the schemas of all connected workers may have {limits.SCHEMAS_BYTES_MAX} bytes "
                "together, equal ones counted once",
                retry_after_ms=RETRY_AFTER_MS,
            )
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
