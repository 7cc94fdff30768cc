"""What callers may do: verbs, on queues that match globs. What no role allows is refused.

A glob is the name of a queue in which `*` stands for any number of characters, also none. It is
compared piece by piece, without going back: no glob and no name make that slow. Of roles that name
ten thousand queues, nearly all are names without a star, or begin or end without one: those are
looked up, and only what is found so is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

PUSH, WORK, READ, READ_PAYLOAD, MANAGE, ADMIN = (
    "push",
    "work",
    "read",
    "read_payload",
    "manage",
    "admin",
)
VERBS = (PUSH, WORK, READ, READ_PAYLOAD, MANAGE, ADMIN)
EVERY = "*"
"""The glob of all queues, and of what belongs to the server and to no queue."""

# Answers that are kept for callers with the same roles.
ANSWERS_MAX = 4_096
# No queue has a longer name: what was sent as one is compared with no glob, and not kept.
NAME_CHARACTERS_MAX = 256


def matches(glob: str, name: str) -> bool:
    """Returns whether a name matches a glob."""
    first, *rest = glob.split(EVERY)
    if not rest:
        return name == first
    last = rest.pop()
    if not name.startswith(first):
        return False
    at = len(first)
    for piece in rest:
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(name) - at >= len(last) and name.endswith(last)


class _Globs:
    """Many globs: names, beginnings of names by their length, and others by the length of the part
    before their first star, or of that behind their last one if they begin with a star, or by the
    longest part if they end with one, too.
    """

    __slots__ = ("_begins", "_by_begin", "_by_end", "_by_part", "_names", "has_every")

    def __init__(self, globs: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._begins: dict[int, set[str]] = {}
        self._by_begin: dict[int, dict[str, list[str]]] = {}
        self._by_end: dict[int, dict[str, list[str]]] = {}
        self._by_part: dict[str, list[str]] = {}
        self.has_every = False
        for glob in dict.fromkeys(globs):
            self._add(glob)

    def _add(self, glob: str) -> None:
        self.has_every |= glob == EVERY
        begin, star, rest = glob.partition(EVERY)
        end = rest.rpartition(EVERY)[2]
        if not star:
            self._names.add(glob)
        elif not rest:
            self._begins.setdefault(len(begin), set()).add(begin)
        elif begin:
            self._by_begin.setdefault(len(begin), {}).setdefault(begin, []).append(glob)
        elif end:
            self._by_end.setdefault(len(end), {}).setdefault(end, []).append(glob)
        else:
            self._by_part.setdefault(max(rest.split(EVERY), key=len), []).append(glob)

    def match(self, name: str) -> bool:
        """Returns whether a name matches any of them."""
        return (
            name in self._names
            or any(name[:length] in some for length, some in self._begins.items())
            or any(matches(glob, name) for glob in self._likely(name))
        )

    def _likely(self, name: str) -> Iterator[str]:
        """Yields the globs with a star before their end that begin or end as a name does, or have a
        part of it.
        """
        for length, some in self._by_begin.items():
            yield from some.get(name[:length], ())
        for length, some in self._by_end.items():
            yield from some.get(name[-length:], ())
        for part, others in self._by_part.items():
            if part in name:
                yield from others


class Grants:
    """What callers with the same roles may do. `allowed`: globs by verb."""

    __slots__ = ("_allowed", "_answers", "_every")

    def __init__(self, allowed: Iterable[tuple[str, Sequence[str]]]) -> None:
        globs: dict[str, list[str]] = {verb: [] for verb in VERBS}
        for verb, some in allowed:
            globs[verb] += some
        self._allowed = {verb: _Globs(some) for verb, some in globs.items()}
        self._every = frozenset(verb for verb, some in self._allowed.items() if some.has_every)
        self._answers: dict[tuple[str, str], bool] = {}

    def may(self, verb: str, queue: str) -> bool:
        """Returns whether they may do this to a queue."""
        if verb in self._every:
            return True
        asked = (verb, queue)
        answer = self._answers.get(asked)
        if answer is None:
            if len(queue) > NAME_CHARACTERS_MAX:
                return False
            answer = self._allowed[verb].match(queue)
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[asked] = answer
        return answer

    def may_all(self, verb: str) -> bool:
        """Returns whether they may do this to all queues, and to what belongs to none."""
        return verb in self._every


class Caller:
    """An authenticated caller. `until_ms`: the wall time at which that is over; None: never."""

    __slots__ = ("may", "may_all", "principal", "until_ms")

    def __init__(self, principal: str, grants: Grants, until_ms: int | None = None) -> None:
        self.principal = principal
        self.until_ms = until_ms
        # Bound here: they are asked in every call.
        self.may = grants.may
        self.may_all = grants.may_all
