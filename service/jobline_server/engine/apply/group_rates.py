"""What facts change of the rates of groups. Only the rates are durable; tokens are not."""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine.group import Group, rate_of
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.state import ShardState


def take_group_tokens(shard: ShardState, queue: Queue, jobs: Iterable[Job | None]) -> None:
    """Takes the tokens of jobs that are about to be leased, of groups that have a rate."""
    rates, mono_ms = shard.group_rates, shard.clocks.mono_ms
    before, defaults = len(rates), queue.settings.group
    for job in jobs:
        if job is None or not job.ties.group:
            continue
        group = queue.groups.find(job.ties.group)
        rate = None if group is None else rate_of(group.settings, defaults)
        if rate is not None:
            rules = job.options.rules
            price = 1 if rules is NO_RULES else min(rules.cost, rate.most())
            rates.take(queue, job.ties.group, rate, price, mono_ms)
    shard.load.group_buckets += len(rates) - before


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
        shard.group_rates.note_own(queue)
    is_new = rate_of(before, queue.settings.group) is None
    count = len(shard.group_rates)
    shard.group_rates.change(queue, group.name, rate, mono_ms, is_new=is_new)
    shard.load.group_buckets += len(shard.group_rates) - count
