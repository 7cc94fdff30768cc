"""Periodic task: tells webhooks of events.

It reads the events of the feed, makes the deliveries that they cause durable, and sends them, each
in an asyncio task of its own, so that a slow receiver delays nobody. A run lasts as long as
something is under way. Nothing else waits for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from jobline_server.background.periodic import Counts
from jobline_server.background.webhook_collected import Collected, first_due_ms, gone
from jobline_server.background.webhook_hosts import Hosts
from jobline_server.background.webhook_messages import (
    Filter,
    delivery_of,
    filters_of,
    found_in,
)
from jobline_server.background.webhook_outcomes import Answer, settled, verdict_on
from jobline_server.background.webhook_sender import Sender
from jobline_server.engine import limits
from jobline_server.engine.values import Now
from jobline_server.engine.webhook import JOBS_WEBHOOK, Delivery, Try, Webhook, WebhookSettings
from jobline_server.runtime.calls.webhooks import WebhookCalls
from jobline_server.runtime.core import Core
from jobline_server.runtime.watch.feed_reader import Answer as Events
from jobline_server.runtime.watch.feed_reader import Part
from jobline_server.runtime.watch.follower import Follower
from jobline_server.telemetry.log import logger
from jobline_server.wire.signatures import signed_headers
from jobline_server.wire.webhook_urls import target_of

LOG = logger("background")

# The pause while webhooks are told of events, and while there are none.
EVERY_SECONDS = 0.2
AT_REST_SECONDS = 1.0
# Deliveries under way: of all, and of one webhook.
SENDING_MAX = 32
OF_ONE_MAX = 8
# Answers of the feed that are read before what is due is sent, and how long a stop reads on.
READS_AT_ONCE = 4
FINISH_MS = 5_000
# How often a run looks for new events, and how long it lasts at most.
LOOK_SECONDS = 0.2
RUN_MS = 30_000
# Deliveries of one commit, and those made in one iteration of the loop: some milliseconds each.
COMMIT_DELIVERIES = 200
STEP_DELIVERIES = 50
# Deliveries of one webhook that are looked at in one iteration.
STEP_DUE = 200


class _Tried(NamedTuple):
    """A try that is over, and where it went."""

    webhook: Webhook
    url: str
    result: Try


@dataclass(slots=True)
class TellWebhooks:
    """Tells webhooks of events."""

    core: Core
    calls: WebhookCalls
    follower: Follower
    sender: Sender
    name: str = "webhooks"
    hosts: Hosts = field(default_factory=Hosts)
    _sending: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _under_way: Counter[str] = field(default_factory=Counter, init=False)
    _turn: int = field(default=0, init=False)
    _tried: list[_Tried] = field(default_factory=list, init=False)
    _filters: list[Filter] = field(default_factory=list, init=False)
    _filtered: list[tuple[int, WebhookSettings]] = field(default_factory=list, init=False)
    _is_closed: bool = field(default=False, init=False)

    @property
    def every_seconds(self) -> float:
        """The pause between two runs."""
        return EVERY_SECONDS if self.core.load.tells_webhooks else AT_REST_SECONDS

    async def run_once(self, now: Now) -> Counts:
        """Tells of all events so far, and sends what is due; returns what became of it."""
        counts: Counter[str] = Counter()
        while self._has_work and not self._is_closed:
            has_more = await self._read(counts)
            await self._note_tries(counts)
            self._begin_due()
            is_idle = not self._sending and not has_more
            if is_idle or self.core.wall_ms() > now.wall_ms + RUN_MS:
                break
            if self._sending and not has_more:
                await asyncio.wait(
                    self._sending, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
        return counts

    async def next_ms(self, now: Now) -> int | None:
        """Returns when the next delivery is tried: now, if there are events to be told of."""
        if not self._has_work:
            return None
        return first_due_ms(self.calls.outgoing()) if self.follower.is_at_end() else now.wall_ms

    @property
    def _has_work(self) -> bool:
        """Whether there may be something to do that can be noted: on a full disk it would be sent
        again and again.
        """
        core = self.core
        return core.load.tells_webhooks and self.calls.is_here and not core.commits.disk_full

    def hurry(self) -> None:
        """Ends a run under way soon, with what is being sent: call it when a stop begins."""
        self._is_closed = True
        for task in self._sending:
            task.cancel()

    async def finish(self) -> None:
        """Ends all that is under way, and makes durable what is known: call it at a stop, when
        nothing happens any more.
        """
        self.hurry()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self.sender.close()
        if self._has_work:
            counts: Counter[str] = Counter()
            await self._note_tries(counts)
            until_ms = self.core.wall_ms() + FINISH_MS
            while await self._read(counts, at_end=True) and self.core.wall_ms() < until_ms:
                pass
            # The row of what this has queued is read, too.
            await self._read(counts, at_end=True)

    async def _read(self, counts: Counter[str], *, at_end: bool = False) -> bool:
        """Has the deliveries of the next events wait; returns whether there may be more."""
        for _ in range(READS_AT_ONCE):
            if self._is_closed and not at_end:
                return False
            try:
                has_more = await self._read_one(counts)
            except BaseException:
                # Events that were read and not taken would be lost. Ids make it safe to take some
                # of them again.
                self.follower.forget()
                raise
            self.follower.keep()
            if not has_more:
                return False
        return True

    async def _read_one(self, counts: Counter[str]) -> bool:
        events, missed = self.follower.read(self.calls.told())
        if missed:
            counts["missed"] += 1
            await self.calls.queue_deliveries({}, (), missed=True)
        if events is None:
            return False
        await self._take(events, counts)
        return True

    async def _take(self, events: Events, counts: Counter[str]) -> None:
        self._filter()
        new, made = Collected(), 0
        for part in events.parts:
            made += await self._take_part(part, new, counts)
            # Parts without anything that is wanted come one after the other.
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        if made:
            await self._queue(new, self.follower.told(), counts)
        await asyncio.sleep(0)  # noqa: TID251  # it does not wait

    def _filter(self) -> None:
        """Makes the filters, if a webhook has changed."""
        outgoing = self.calls.outgoing()
        filtered = [(one.number, one.settings) for one in outgoing]
        if filtered != self._filtered:
            self._filters, self._filtered = filters_of(outgoing), filtered

    async def _take_part(self, part: Part, new: Collected, counts: Counter[str]) -> int:
        """Makes the deliveries of events that are sent together; returns how many."""
        run, now_ms, made = part.run.part(part.skip, part.count), self.core.wall_ms(), 0
        # Of a million jobs at once only the last ones would not be dropped again.
        for found in found_in(run, self._filters, limits.WEBHOOK_PENDING_MAX):
            if found is None:
                await asyncio.sleep(0)  # noqa: TID251  # it does not wait
                continue
            made += 1
            if found.dropped:
                new.drop(found.webhook, found.dropped)
            else:
                new.add(found.webhook, delivery_of(part, run, found, now_ms))
            if new.count >= COMMIT_DELIVERIES:
                await self._queue(new, (), counts)
            if made % STEP_DELIVERIES == 0:
                await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        return made

    async def _queue(self, new: Collected, told: tuple[int, ...], counts: Counter[str]) -> None:
        deliveries = new.take(but=gone(self._filters, self.calls.outgoing()))
        counts["queued"] += await self.calls.queue_deliveries(deliveries, told)
        self._begin_due()

    async def _note_tries(self, counts: Counter[str]) -> None:
        tried, self._tried = self._tried, []
        now = {one.name: one for one in self.calls.outgoing()}
        by_webhook: dict[str, list[Try]] = {}
        for webhook, url, one in tried:
            # Those of a webhook that was deleted are not those of another with its name.
            if now.get(webhook.name) is webhook:
                result = settled(webhook, url, one)
                by_webhook.setdefault(webhook.name, []).append(result)
                counts[result.outcome.name.lower()] += 1
        if by_webhook:
            await self.calls.note_tries(by_webhook)

    def _begin_due(self) -> None:
        """Begins to send what is due, while there is room; each time another webhook is first."""
        now_ms, outgoing = self.core.wall_ms(), self.calls.outgoing()
        self._turn = (self._turn + 1) % max(len(outgoing), 1)
        for webhook in (*outgoing[self._turn :], *outgoing[: self._turn]):
            if not webhook.settings.disabled and not self._is_closed:
                self._begin_of(webhook, now_ms)

    def _begin_of(self, webhook: Webhook, now_ms: int) -> None:
        for _ in range(STEP_DUE):
            is_full = self._under_way[webhook.name] >= OF_ONE_MAX
            if is_full or len(self._sending) >= SENDING_MAX:
                return
            delivery = webhook.pop_due(now_ms)
            if delivery is None:
                return
            host = target_of(delivery.url or webhook.settings.url).authority
            again_ms = self.hosts.begin(host, now_ms)
            if not again_ms:
                task = asyncio.create_task(self._send(webhook, delivery, host))
                self._sending.add(task)
                self._under_way[webhook.name] += 1
                task.add_done_callback(partial(self._sent, webhook.name))
                continue
            if webhook.name != JOBS_WEBHOOK:
                # The others have the same host: this one stays the first.
                webhook.arm(delivery.number, delivery.due_ms)
                return
            webhook.arm(delivery.number, again_ms)

    def _sent(self, webhook: str, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._under_way[webhook] -= 1
        if not self._under_way[webhook]:
            del self._under_way[webhook]

    async def _send(self, webhook: Webhook, delivery: Delivery, host: str) -> None:
        core, began_ms = self.core, self.core.wall_ms()
        answer = Answer(error="cut off")
        url = delivery.url or webhook.settings.url
        try:
            secrets = webhook.secrets.valid(began_ms)
            headers = signed_headers(secrets, delivery.id, began_ms // 1_000, delivery.body)
            headers["content-type"] = "application/json"
            answer = await self.sender.send(url, headers, delivery.body, began_ms)
        except asyncio.CancelledError:
            webhook.arm(delivery.number, delivery.due_ms)
            raise
        except Exception:  # a mistake of ours: tried again like others
            LOG.exception("a webhook was not sent", webhook=webhook.name)
            answer = Answer(error="the server failed to send it", is_unasked=True)
        finally:
            now_ms = core.wall_ms()
            self.hosts.end(host, now_ms, is_down=answer.is_down)
        verdict = verdict_on(answer, delivery, now_ms)
        one = Try(
            delivery.number,
            delivery.id,
            delivery.type,
            began_ms,
            now_ms - began_ms,
            delivery.tries + 1,
            answer.status,
            verdict.outcome,
            verdict.error,
            verdict.next_ms,
        )
        self._tried.append(_Tried(webhook, url, one))
