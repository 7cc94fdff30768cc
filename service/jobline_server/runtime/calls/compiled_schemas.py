"""Schemas, compiled to check payloads against: the least recently used ones go.

A compiled schema takes much more memory than its text, and how much only the library knows. So each
counts as the most that one of its length, with so many patterns, was seen to take.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, NamedTuple

from jobline_server.runtime.calls.schema_width import extent_of

# The width of all schemas of a name together. Wider ones cannot be used.
WIDTH_MAX = 1_024
# What a pattern may take in memory: so long that the slowest take half a microsecond for a byte.
PATTERN_BYTES_MAX = 64 << 10
# Bytes that a compiled schema takes for each one of its text, at most: lists of small objects do.
BYTES_A_CHARACTER = 100
# A schema that was not compiled, beside its text.
ENTRY_BYTES = 500
# All compiled schemas together; those that were dropped are compiled again when they are needed.
COMPILED_BYTES_MAX = 256 << 20


class Schema(NamedTuple):
    """A schema that was compiled; without a validator, if it says nothing or cannot be used."""

    validator: Any
    width: int
    held_bytes: int

    def first_misfit(self, value: Any) -> str | None:
        """Returns the place in the schema that a value does not fit first; None if it fits."""
        try:
            # Not `iter_errors`: that lists all of them before it yields the first.
            self.validator.validate(value)
        except ValueError as error:
            return "/".join(map(str, getattr(error, "schema_path", ())))
        return None


class CompiledSchemas:
    """Compiled schemas by their text, the least recently used first."""

    __slots__ = ("_schemas", "held_bytes")

    def __init__(self) -> None:
        self._schemas: OrderedDict[str, Schema] = OrderedDict()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._schemas)

    def __contains__(self, text: str) -> bool:
        return text in self._schemas

    def find(self, text: str) -> Schema:
        """Returns a schema, compiled."""
        found = self._schemas.get(text)
        if found is not None:
            self._schemas.move_to_end(text)
            return found
        found = self._schemas[text] = _compile(text)
        self.held_bytes += found.held_bytes
        while self.held_bytes > COMPILED_BYTES_MAX:
            self.forget(next(iter(self._schemas)))
        return found

    def forget(self, text: str) -> None:
        """Drops a schema, if it is here."""
        found = self._schemas.pop(text, None)
        if found is not None:
            self.held_bytes -= found.held_bytes


def _compile(text: str) -> Schema:
    takes_anything = Schema(None, WIDTH_MAX + 1, ENTRY_BYTES + len(text))
    if not text:
        return takes_anything
    try:
        parsed = json.loads(text)
        width, patterns = extent_of(parsed)
        if width > WIDTH_MAX:
            return takes_anything
        # It takes 8 MiB of memory, which servers whose workers announce no schemas do not pay.
        import jsonschema_rs  # noqa: PLC0415

        options = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES_MAX)
        validator = jsonschema_rs.validator_for(parsed, offline=True, pattern_options=options)
    except (ValueError, RecursionError):  # its own errors are such
        return takes_anything
    return Schema(validator, width, BYTES_A_CHARACTER * len(text) + PATTERN_BYTES_MAX * patterns)
