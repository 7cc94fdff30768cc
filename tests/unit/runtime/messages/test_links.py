"""The link to shards of the same process: applied once, answered after the commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.receive import MessageGap
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import MessageBatch, PushJobs
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.runtime.messages.links import LocalLink
from tests.unit.runtime.messages.sending import HERE, THERE, Sending, a_moment, sending

FIRST = 1_000


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Sending]:
    async with sending(tmp_path) as one:
        yield one


@pytest.fixture
def link(pair: Sending) -> LocalLink:
    return LocalLink(pair.runtime.core)


def a_batch(*payloads: bytes, first: int = FIRST, held_from: int = FIRST) -> MessageBatch:
    messages = tuple(PushJobs("q", DEFAULT_OPTIONS, Payloads.of([one])) for one in payloads)
    return MessageBatch(HERE, THERE, held_from, first, messages)


async def delivered(pair: Sending, link: LocalLink, batch: MessageBatch) -> int:
    """The answer, after the commit of the receiver and not before."""
    delivery = asyncio.ensure_future(link.deliver(batch))
    await a_moment()
    assert not delivery.done()
    await pair.commit()
    return await delivery


async def test_a_batch_is_answered_with_its_last_number_after_the_commit(
    pair: Sending, link: LocalLink
) -> None:
    assert await delivered(pair, link, a_batch(b"1", b"2")) == FIRST + 1
    assert pair.arrived() == [b"1", b"2"]


async def test_what_comes_again_is_answered_again_and_not_applied(
    pair: Sending, link: LocalLink
) -> None:
    """Of a batch that overlaps, the rest is."""
    await delivered(pair, link, a_batch(b"1", b"2"))
    assert await link.deliver(a_batch(b"1", b"2")) == FIRST + 1
    assert await link.deliver(a_batch(b"1")) == FIRST + 1
    assert await delivered(pair, link, a_batch(b"2", b"3", first=FIRST + 1)) == FIRST + 2
    assert pair.arrived() == [b"1", b"2", b"3"]


async def test_a_batch_that_comes_again_before_the_commit_waits_for_it(
    pair: Sending, link: LocalLink
) -> None:
    """What was applied in memory may still be lost."""
    first, again = [asyncio.ensure_future(link.deliver(a_batch(b"1"))) for _ in range(2)]
    await a_moment()
    assert not again.done()
    await pair.commit()
    assert (await first, await again, pair.arrived()) == (FIRST, FIRST, [b"1"])


async def test_a_batch_whose_forerunner_is_missing_is_refused(
    pair: Sending, link: LocalLink
) -> None:
    """As long as its sender has that one; nothing is applied, and the link serves the next."""
    with pytest.raises(MessageGap):
        await link.deliver(a_batch(b"2", first=FIRST + 1))
    assert pair.arrived() == []
    assert await delivered(pair, link, a_batch(b"1")) == FIRST
    later = a_batch(b"9", first=FIRST + 8, held_from=FIRST + 8)
    assert await delivered(pair, link, later) == FIRST + 8


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("disk", RefusalKind.DISK_FULL),
        ("ids", RefusalKind.SERVER_FULL),
        ("elsewhere", RefusalKind.SHARD_UNAVAILABLE),
    ],
)
async def test_a_receiver_that_cannot_take_a_batch_refuses_it(
    pair: Sending, link: LocalLink, why: str, kind: RefusalKind
) -> None:
    """Each message may create a queue, which takes an id as its jobs do."""
    receiver, batch = pair.runtime.core.slots[THERE], a_batch(b"1", b"2")
    if why == "disk":
        pair.runtime.core.commits.disk_full = True
    elif why == "ids":
        receiver.position.id_ceiling = receiver.shard.next_sequence + 2 + 2
    else:
        batch = replace(batch, to_shard=9)
    with pytest.raises(Refused) as refused:
        await link.deliver(batch)
    assert refused.value.kind is kind
    assert pair.arrived() == []


async def test_one_batch_is_applied_in_an_iteration_of_the_loop(
    pair: Sending, link: LocalLink
) -> None:
    """However many senders and receivers there are."""
    batches = [replace(a_batch(b"1"), from_shard=sender) for sender in range(2, 6)]
    deliveries = [asyncio.ensure_future(link.deliver(batch)) for batch in batches]
    counts = []
    for _ in range(len(batches) * 3):
        await asyncio.sleep(0)
        counts.append(len(pair.arrived()))
    steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert (counts[-1], max(steps)) == (len(batches), 1)
    await pair.commit()
    assert await asyncio.gather(*deliveries) == [FIRST] * len(batches)


async def test_a_sender_that_leaves_holds_up_no_other(pair: Sending, link: LocalLink) -> None:
    """Its batch was applied all the same."""
    leaves = asyncio.ensure_future(link.deliver(a_batch(b"1")))
    await asyncio.sleep(0)
    leaves.cancel()
    await a_moment()
    other = replace(a_batch(b"2"), from_shard=2)
    assert await delivered(pair, link, other) == FIRST
    assert (leaves.cancelled(), pair.arrived()) == (True, [b"1", b"2"])
