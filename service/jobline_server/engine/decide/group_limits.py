"""Limits of groups: their rates, and times until which they let nothing out.

A group that lets nothing out is closed by a fact, which takes its READY jobs out of their lanes; a
timer opens it again. So a pull examines a group that has used up its rate once, and no pull and no
timer walks over the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.decide.groups import check_room, record_number
from jobline_server.engine.decide.queues import LIMITED_BY_WORKER, existing_queue, longer_limit_ms
from jobline_server.engine.group import Group
from jobline_server.engine.group_entries import GroupLimited
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import TokenBucket
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView

# Groups that one hand-out closes, about 25 µs each, and choices that kept no job. The next
# iteration of the loop goes on.
CLOSED_MAX = 300
CHOICES_MAX = 50
# Groups that the timers open at once: about 40 µs each in a fair queue, 7 µs in others.
OPENED_MAX = 300


class UsedUp(NamedTuple):
    """A group without tokens for its next job, of this price; `leased` go out before it now."""

    bucket: TokenBucket
    price: int
    leased: list[int]


def choose_within_rates(
    shard: ShardView, now: Now, queue: Queue, chosen: Choice, choose: Callable[[], None]
) -> None:
    """Has `choose` add the next jobs of `queue` to `chosen`, drops those whose groups have used up
    their rates, and closes these groups. The others are at the heads of their lanes then. Lease
    what is chosen: its tokens are taken. Only where groups have rates.
    """
    room = chosen.jobs_room, chosen.bytes_room, chosen.slots_room
    closed = 0
    for _ in range(CHOICES_MAX):
        choose()
        used_up = _take_tokens(shard, now, queue, chosen)
        for group, wanted in used_up.items():
            _close(shard, now, queue, group, wanted)
        if chosen.items or not used_up:
            if used_up:
                # Other jobs may go out in the place of those that were dropped.
                shard.gates.ask_again(queue, now.mono_ms)
            return
        chosen.jobs_room, chosen.bytes_room, chosen.slots_room = room
        closed += len(used_up)
        if closed >= CLOSED_MAX:
            break
    shard.gates.ask_again(queue, now.mono_ms)


def _take_tokens(shard: ShardView, now: Now, queue: Queue, chosen: Choice) -> dict[Group, UsedUp]:
    """Takes a token for each job; drops one that its group has no tokens for, and the jobs of this
    group behind it. They leave their lanes as the group is closed.
    """
    find, default, mono_ms = queue.groups.find, queue.settings.group.rate, now.mono_ms
    used_up: dict[Group, UsedUp] = {}
    kept: list[Job | LotRun] = []
    for item in chosen.items:
        if (
            not isinstance(item, Job)
            or (group := find(item.ties.group)) is None
            or (rate := group.settings.rate or default) is None
        ):
            kept.append(item)
            continue
        if used_up and group in used_up:
            continue
        bucket = group.bucket
        if bucket is None or bucket.limit is not rate:
            bucket = shard.group_rates.bucket_of(queue, group, rate, mono_ms)
        cost = item.options.rules.cost
        price = cost if cost == 1 else bucket.price(cost)
        if bucket.pays(price, mono_ms):
            kept.append(item)
        elif len(used_up) < CLOSED_MAX:
            used_up[group] = UsedUp(bucket, price, [])
        else:
            # It stays where it is, and all behind it.
            break
    chosen.items[:] = kept
    for item in kept if used_up else ():
        group = find(item.ties.group) if isinstance(item, Job) else None
        if group is not None and group in used_up:
            used_up[group].leased.append(item.id)
    return used_up


def _close(shard: ShardView, now: Now, queue: Queue, group: Group, used_up: UsedUp) -> None:
    """Closes a group until it has tokens for its next job."""
    opens_ms = used_up.bucket.next_ms(used_up.price, now.mono_ms)
    shard.emit(
        GroupLimited(
            now.wall_ms,
            queue.name,
            group.name,
            until_ms=now.wall_ms + opens_ms - now.mono_ms,
            number=record_number(shard, queue, group.name),
            is_used_up=True,
            leased=used_up.leased,
        )
    )


def decide_limit_group(  # who and why are arguments of their own
    shard: ShardView,
    now: Now,
    queue_name: str,
    name: str,
    until_ms: int,
    principal: str,
    reason: str,
) -> None:
    """Has a group let nothing out until a wall time, instead of what was said before; a time that
    has passed lifts that limit. Raises `Refused` with QUEUE_NOT_FOUND or GROUPS_FULL.
    """
    queue = existing_queue(shard, queue_name)
    group = queue.groups.find(name)
    if until_ms > now.wall_ms:
        check_room(shard, queue, name)
        _limit(shard, now, queue, name, until_ms, principal, reason)
    elif group is not None and group.limited is not None and not group.is_used_up:
        shard.emit(GroupLimited(now.wall_ms, queue_name, name, 0))


def limit_group_as_told(shard: ShardView, now: Now, job: Job, until_ms: int) -> None:
    """Has the group of a released job let nothing out until a wall time, as its worker says, but
    for no longer than workers may; it takes no time back that was said before.
    """
    group = job.queue.groups.find(job.ties.group)
    until_ms = longer_limit_ms(shard, now, None if group is None else group.limited, until_ms)
    if until_ms:
        worker = job.holder.worker if job.holder else ""
        _limit(shard, now, job.queue, job.ties.group, until_ms, worker, LIMITED_BY_WORKER)


def _limit(  # who and why are arguments of their own
    shard: ShardView, now: Now, queue: Queue, name: str, until_ms: int, by: str, reason: str
) -> None:
    number = record_number(shard, queue, name)
    shard.emit(GroupLimited(now.wall_ms, queue.name, name, until_ms, by, reason, number))


def open_groups(shard: ShardView, now: Now) -> bool:
    """Opens a slice of the groups whose time has come; returns whether more are due. Forgets tokens
    of groups that are gone.
    """
    shard.group_rates.sweep(now.mono_ms)
    more = shard.closed_groups.ask_part(now)
    for _ in range(OPENED_MAX):
        group = shard.closed_groups.due(now)
        if group is None:
            return more
        is_used_up = group.is_used_up
        shard.emit(GroupLimited(now.wall_ms, group.queue, group.name, 0, is_used_up=is_used_up))
    return True
