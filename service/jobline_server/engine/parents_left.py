"""The jobs that a BLOCKED one still waits for: a tuple, as most wait for few, or the keys of a
dictionary, which shrinks in place. To copy a tuple of hundreds for each parent that ends, of each
of a thousand jobs that wait for it, would take most of the time of telling them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.states import IllegalMove

# To search and copy a tuple of so many takes as long as a dictionary.
TUPLE_MAX = 16

ParentsLeft = tuple[int, ...] | dict[int, None]


def left_of(parents: Sequence[int]) -> ParentsLeft:
    """Returns the parents as a job keeps them, in the same order."""
    return tuple(parents) if len(parents) <= TUPLE_MAX else dict.fromkeys(parents)


def without(parents: ParentsLeft, parent: int) -> ParentsLeft:
    """Returns the parents but for one of them; a dictionary is changed."""
    if parent not in parents:
        raise IllegalMove(f"job {parent} is not waited for")
    if isinstance(parents, dict):
        del parents[parent]
        return parents
    at = parents.index(parent)
    return parents[:at] + parents[at + 1 :]
