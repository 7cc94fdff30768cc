"""Makes the reply of a push."""

from __future__ import annotations

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine.commands import Pushed, RefusalKind
from jobline_server.engine.values import STORED_OUTCOMES


def push_response(
    request: job_service_pb2.PushRequest, pushed: Pushed
) -> job_service_pb2.PushResponse:
    """Returns the reply; it lists single ids only for jobs sent in `jobs`."""
    response = job_service_pb2.PushResponse(
        first_id=pushed.first_id,
        count=pushed.count,
        ack_level=job_pb2.AckLevel.ValueType(pushed.level),
    )
    for index, outcome, job_id in pushed.exceptions:
        row = response.exceptions.add()
        row.index = index
        if isinstance(outcome, RefusalKind):
            row.outcome, row.reason = job_service_pb2.PUSH_OUTCOME_REFUSED, outcome.value
            continue
        row.outcome = job_service_pb2.PushOutcome.ValueType(outcome)
        row.id = job_id
    if request.jobs:
        response.ids.extend(ids_in_order(pushed))
    return response


def ids_in_order(pushed: Pushed) -> list[int] | range:
    """Returns the ids of all jobs of a push in order: new ones in a row, the others from the
    exceptions.
    """
    created = range(pushed.first_id, pushed.first_id + pushed.count)
    if not pushed.exceptions:
        return created
    others = {
        index: job_id
        for index, outcome, job_id in pushed.exceptions
        if outcome not in STORED_OUTCOMES
    }
    rest = iter(created)
    total = pushed.count + len(others)
    return [others[index] if index in others else next(rest) for index in range(total)]
