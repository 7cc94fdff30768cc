"""Pushes the jobs of the shop, more and less of them as a day goes by, and waits for their ends."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from demo.shop import CUSTOMERS, QUEUES
from jobline import AsyncClient, Backoff, FlowJob, NewJob

# Pushes are made this often; `_share` says how many jobs each brings.
_TICK_SECONDS = 0.1
_DELAYED = 5
_EXPORTED_ROWS = 400
# Between these parts of the time, customers' servers are down.
_DOWN = (0.35, 0.5)
_SILENCE_SECONDS_MAX = 60.0


async def prepare(client: AsyncClient) -> None:
    """Sets the queues up: short pauses, so that a demo sees all attempts of a job."""
    for queue in QUEUES:
        await client.queues.update(
            queue,
            backoff=Backoff(base="200ms", max_delay="2s"),
            disconnect_grace="1s",
            fair=queue == "images",
        )


async def push_all(client: AsyncClient, seconds: float, tell: Callable[[float], None]) -> None:
    """Pushes jobs for some seconds; `tell` hears which share of the time is over."""
    begun = time.monotonic()
    await _export(client)
    number = 0
    while (over := (time.monotonic() - begun) / seconds) < 1:
        number += 1
        is_down = _DOWN[0] <= over < _DOWN[1]
        await asyncio.gather(*_pushes(client, number, _share(over), is_down=is_down))
        tell(over)
        await asyncio.sleep(max(0.0, begun + number * _TICK_SECONDS - time.monotonic()))
    await client.push_payloads("search", [b"reindex"] * 20, name="search.index", priority=-5)
    cancelled = [await client.push("mail", "too late", name="mail.receipt", delay="1h")]
    await client.jobs.cancel(*(job.id for job in cancelled), reason="the order was withdrawn")
    await client.push_payloads("mail", [b"tomorrow"] * _DELAYED, name="mail.newsletter", delay="1h")


async def wait_until_done(client: AsyncClient) -> None:
    """Waits until only the delayed jobs are left. Raises if nothing ends for a minute."""
    last, since = -1, time.monotonic()
    while (left := await _left(client)) > _DELAYED:
        if left != last:
            last, since = left, time.monotonic()
        if time.monotonic() - since > _SILENCE_SECONDS_MAX:
            raise RuntimeError(f"{left:,} jobs are left, and none has ended for a minute")
        await asyncio.sleep(0.1)


async def _left(client: AsyncClient) -> int:
    counts = [(await client.queues.get(queue)).counts for queue in QUEUES]
    return sum(each.scheduled + each.blocked + each.ready + each.active for each in counts)


def _share(over: float) -> float:
    """Returns how busy the shop is at this part of the time, 0.15 … 1."""
    return 0.15 + 0.85 * math.sin(math.pi * over) ** 2


def _pushes(
    client: AsyncClient, number: int, share: float, *, is_down: bool
) -> list[asyncio.Future[object]]:
    """Starts the pushes of one tick."""

    def some(most: float) -> range:
        return range(max(1, round(most * share)))

    busiest = CUSTOMERS[0] if number % 3 else CUSTOMERS[number // 3 % len(CUSTOMERS)]
    made = [
        client.push_payloads(
            "mail", [b"Our news"] * len(some(40)), name="mail.newsletter", tags=["news"]
        ),
        client.push_payloads("search", [b"article"] * len(some(60)), name="search.index"),
        client.push_many(
            "images",
            [NewJob({"width": 80 * n}, name="image.resize", group=busiest) for n in some(12)],
        ),
        client.push_many(
            "webhooks",
            [
                NewJob(
                    {"event": "paid", "down": is_down},
                    name="webhook.send",
                    headers={"shop-customer": CUSTOMERS[n % len(CUSTOMERS)]},
                )
                for n in some(10)
            ],
        ),
        *(
            client.push("mail", {"order": n}, name="mail.receipt", priority=5, max_attempts=4)
            for n in some(6)
        ),
        *(client.flows.push(_order(number * 100 + n)) for n in some(2)),
    ]
    return [asyncio.ensure_future(each) for each in made]


def _order(number: int) -> FlowJob:
    """An order is shipped when it is paid and both of its articles are reserved."""
    paid = FlowJob("payments", {"order": number}, name="payment.charge", max_attempts=1)
    articles = [
        FlowJob("stock", {"article": number * 2 + n}, name="stock.reserve") for n in range(2)
    ]
    return FlowJob("orders", {"order": number}, name="order.ship", children=[paid, *articles])


async def _export(client: AsyncClient) -> None:
    async with await client.batches.create("nightly export") as batch:
        await batch.push_payloads("exports", [b"rows"] * _EXPORTED_ROWS, name="export.rows")
