"""What facts change of the rates of groups. Only the rates are durable; tokens are not."""

from __future__ import annotations

from jobline_server.engine.group import Group, rate_of
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def change_default_rate(shard: ShardState, queue: Queue, before: GroupSettings) -> None:
    """Puts the rate that a queue has for its groups in force; closed groups are examined again."""
    if queue.groups and queue.settings.group.rate != before.rate:
        shard.closed_groups.ask_all(queue)


def change_own_rate(shard: ShardState, queue: Queue, group: Group, before: GroupSettings) -> None:
    """Puts the rate of one group in force; if it is closed, it is examined again."""
    rate = rate_of(group.settings, queue.settings.group)
    mono_ms = shard.clocks.mono_ms
    shard.closed_groups.ask(group, mono_ms)
    if rate is None:
        return
    if group.settings.rate is not None:
        queue.groups.have_rates = True
    had_none = rate_of(before, queue.settings.group) is None
    shard.group_rates.change(queue, group, rate, mono_ms, had_none=had_none)
