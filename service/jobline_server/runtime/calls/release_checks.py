"""Checks of releases that say until when a limiter lets nothing out."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.commands import RefusalKind, Refused, ReleaseItem
from jobline_server.engine.decide.limiters import may_empty
from jobline_server.runtime.core import Core


def check_limiters(core: Core, items: Sequence[ReleaseItem], field: str, first: int = 0) -> None:
    """Refuses a release that names a limiter which its job does not pass. `field` is the path of
    the list, `first` the index in it of the first of these items.
    """
    for index, item in enumerate(items, first):
        slot = core.slots.find_by_id(item.id) if item.limiter else None
        if slot is not None and not may_empty(slot.shard, item):
            message = f"is none of those that job {item.id} passes"
            path = f"{field}[{index}].limiter"
            raise Refused(RefusalKind.INVALID_FIELD, message, field=path)
