"""What a flow must do, said plainly; a part of the reference model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from jobline_server.engine.commands import Push
from jobline_server.runtime.calls.flows import FlowPart
from tests.pushed_rows import jobs_of, rows_of
from tests.unit.engine import reference_push
from tests.unit.engine.reference_model import ReferenceModel


def push_flow(model: ReferenceModel, parts: Sequence[FlowPart], next_id: int) -> list[int]:
    """A flow is its pushes, one after the other; or none of them, if one is refused."""
    shared = {id(job.options): job.options for job in model.jobs.values()}
    _push(deepcopy(model, shared), parts, next_id)
    return _push(model, parts, next_id)


def _push(model: ReferenceModel, parts: Sequence[FlowPart], next_id: int) -> list[int]:
    ids = [0] * sum(len(part.places) for part in parts)
    for part in parts:
        outcomes = reference_push.push(model, _behind(part, ids), next_id)
        for place, (_, job_id) in zip(part.places, outcomes, strict=True):
            ids[place] = job_id
        next_id = max(next_id, max(ids) + 1)
    return ids


def _behind(part: FlowPart, ids: Sequence[int]) -> Push:
    """The push of jobs that wait for others, which have ids by now."""
    if not part.children:
        return part.command
    rows = rows_of(
        job._replace(ties=replace(job.ties, parents=tuple(ids[child] for child in own)))
        for job, own in zip(jobs_of(part.command.rows), part.children, strict=True)
    )
    return replace(part.command, rows=rows)
