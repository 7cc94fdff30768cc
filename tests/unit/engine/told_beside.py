"""What runs beside decisions where jobs depend on others: look-ups, and the telling of ends; done
to the engine and to the reference model.
"""

from __future__ import annotations

from jobline_server.engine.commands import Push, Pushed
from jobline_server.engine.decide.dependencies import decide_parents_ended, tell_round
from jobline_server.engine.decide.outcomes import OutcomesNeeded
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from tests.unit.engine import reference_dependencies
from tests.unit.engine.reference_model import ReferenceModel

ALL = 1_000_000


def decide(shard: Shard, now: Now, model: ReferenceModel, command: Push) -> tuple[Pushed, bool]:
    """The engine's answer to a push, and whether ended jobs had to be looked up for it."""
    try:
        return decide_push(shard, now, command), False
    except OutcomesNeeded as needed:
        states = reference_dependencies.looked_up(model, needed.ids)
        return decide_push(shard, now, command, states), True


def tell(shard: Shard, now: Now, model: ReferenceModel) -> bool:
    """All children are told what became of their parents; says whether any was looked up."""
    dependencies = shard.dependencies
    ids = dependencies.due_look_ups(ALL)
    if ids:
        decide_parents_ended(shard, now, reference_dependencies.looked_up(model, ids))
    while order := list(dict.fromkeys(dependencies.pending)):
        tell_round(shard, now, ALL)
        reference_dependencies.tell(model, order)
    return bool(ids)
