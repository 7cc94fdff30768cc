"""What became of each job of a push, for tests."""

from __future__ import annotations

from jobline_server.engine.commands import Pushed, RefusalKind
from jobline_server.engine.values import STORED_OUTCOMES, PushOutcome


def outcomes_of(pushed: Pushed, count: int) -> list[tuple[PushOutcome | RefusalKind, int]]:
    """An outcome and an id for each job: created ones have the ids from the first on, in order."""
    exceptions = {index: (outcome, job_id) for index, outcome, job_id in pushed.exceptions}
    created = iter(range(pushed.first_id, pushed.first_id + pushed.count))
    outcomes = [exceptions.get(index, (PushOutcome.CREATED, 0)) for index in range(count)]
    for index, (outcome, job_id) in enumerate(outcomes):
        if outcome in STORED_OUTCOMES:
            outcomes[index] = (outcome, next(created))
            assert job_id in (0, outcomes[index][1])
    assert next(created, None) is None, "more ids than jobs"
    return outcomes
