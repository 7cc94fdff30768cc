"""The trace context of a call, for its metadata: so that the span that the server makes of it is a
child of the caller's. Whoever traces says how it is found; without tracing nothing is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Pairs = Iterable[tuple[str, str]]

_find: Callable[[], Pairs] | None = None


def use(find: Callable[[], Pairs]) -> None:
    """Has the calls of this process carry what `find` returns, beside their own metadata."""
    global _find  # noqa: PLW0603  # of the process, as OpenTelemetry's own context is
    _find = find


def found() -> Pairs:
    """Returns the trace context of this moment; nothing where nobody traces."""
    return () if _find is None else _find()
