"""The jobs that a BLOCKED one still waits for: a tuple, as most wait for few, or a dictionary with
their places among all its parents, which shrinks in place. To copy a tuple of hundreds for each
parent that ends, of each of a thousand jobs that wait for it, would take most of the time of
telling them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.ties import Ties

# To search and copy a tuple of so many takes as long as a dictionary.
TUPLE_MAX = 16

ParentsLeft = tuple[int, ...] | dict[int, int]


def left_of(parents: Sequence[int], ties: Ties) -> ParentsLeft:
    """Returns the parents as a job with these ties keeps them, in the same order."""
    if len(parents) <= TUPLE_MAX:
        return tuple(parents)
    if not ties.on_failure:
        # Nobody asks for their places.
        return dict.fromkeys(parents, 0)
    places = {parent: at for at, parent in enumerate(ties.parents)}
    return {parent: places[parent] for parent in parents}


def policy_about(left: ParentsLeft, parent: int, ties: Ties) -> DependencyPolicy | None:
    """Returns the policy of a job about a parent that it waits for; None: it has none."""
    if not ties.on_failure:
        return None
    return ties.policy_at(left[parent] if isinstance(left, dict) else ties.parents.index(parent))


def without(parents: ParentsLeft, parent: int) -> ParentsLeft:
    """Returns the parents but for one of them; a dictionary is changed."""
    if parent not in parents:
        raise IllegalMove(f"job {parent} is not waited for")
    if isinstance(parents, dict):
        del parents[parent]
        return parents
    at = parents.index(parent)
    return parents[:at] + parents[at + 1 :]
