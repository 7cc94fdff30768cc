"""What a queue must be, or must not be, because it is fair or is not."""

from __future__ import annotations

from operator import attrgetter

from jobline_server.engine import limits
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.push_fields import option_field
from jobline_server.engine.queue import Queue

_PRIORITY, _LIFO = attrgetter("priority"), attrgetter("rules.lifo")


def check_switch(queue: Queue) -> None:
    """Refuses to change `fair` of a queue whose groups have many live jobs: all of them move to
    other lanes in one step.
    """
    most, each = limits.FAIR_SWITCH_JOBS_MAX, limits.FAIR_SWITCH_GROUP_JOBS
    counted = each * len(queue.groups)
    # Without a look at each of very many groups.
    if counted > most or counted + sum([group.live for group in queue.groups]) > most:
        message = (
            f"the groups of queue {queue.name} have more than {most:,} live jobs, where each group "
            f"counts as {each} more: `fair` is switched while they have fewer"
        )
        raise Refused(RefusalKind.WRONG_STATE, message, field="settings.fair")


def refuse_priorities(queue: Queue | None, command: Push) -> None:
    """Refuses priority and lifo of a job of a group, whose jobs run in the order of their pushes,
    unless the queue is fair.
    """
    rows = command.rows
    if command.is_checked or not rows.ties or (queue is not None and queue.settings.fair):
        return
    for index, (options, ties) in enumerate(zip(rows.options, rows.ties, strict=True)):
        if ties.group and (options.priority or options.rules.lifo):
            name, value_of = ("priority", _PRIORITY) if options.priority else ("lifo", _LIFO)
            message = f"not together with group, unless queue {command.queue} is fair"
            field = option_field(command, index, name, value_of)
            raise Refused(RefusalKind.INVALID_FIELD, message, field=field)
