"""Rules of the state machines that webhooks take part in: as the background task does it, but for
what is sent.
"""

from __future__ import annotations

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.webhooks import (
    decide_create_webhook,
    decide_delete_webhook,
    decide_note_tries,
    decide_queue_deliveries,
    decide_rotate_secret,
    decide_update_webhook,
)
from jobline_server.engine.webhook import (
    JOBS_WEBHOOK,
    RETRY_MS_MAX,
    Delivery,
    Try,
    TryOutcome,
    Webhook,
    WebhookSettings,
)
from tests.storage.recovery_world import World

PENDING_MAX = 4
"""How many deliveries of a webhook may wait in these histories."""

names = st.sampled_from(["w", "w", JOBS_WEBHOOK])
outgoing = st.sampled_from(
    [
        WebhookSettings(url="https://example.com/"),
        WebhookSettings(url="https://example.com/", events=(3, 5), names=("mail",), tags=("a",)),
        WebhookSettings(url="https://example.com/", disabled=True),
        WebhookSettings(incoming_queue="alpha"),
    ]
)


class WebhookRules(RuleBasedStateMachine):
    """Webhooks come, change and go; deliveries wait, are tried, dropped and over."""

    world: World

    @rule(
        name=names,
        settings=outgoing,
        what=st.sampled_from(["create", "create", "update", "rotate", "delete"]),
    )
    def operate_on_a_webhook(self, name, settings, what):
        shard, now = self.world.shard, self.world.now
        with suppress(Refused):
            if what == "create":
                decide_create_webhook(shard, now, name, settings, b"1", told=self._told())
            elif what == "update":
                decide_update_webhook(shard, now, name, settings)
            elif what == "rotate":
                decide_rotate_secret(shard, now, name, b"%d" % (shard.next_id() % 3))
            else:
                decide_delete_webhook(shard, now, name)

    @rule(
        name=names,
        events=st.lists(st.integers(0, 9), max_size=3, unique=True),
        dropped_early=st.sampled_from([0, 0, 2]),
        missed=st.sampled_from([False, False, True]),
        committed=st.booleans(),
    )
    def tell_of_events(self, name, events, dropped_early, missed, committed):
        """Some of them were told before."""
        url = "https://example.com/job" if name == JOBS_WEBHOOK else ""
        now_ms = self.world.now.wall_ms
        deliveries = [
            Delivery(0, f"msg_{event}", "job.completed", b"b" * event, now_ms + 100 * event, url)
            for event in events
        ]
        with suppress(Refused):
            decide_queue_deliveries(
                self.world.shard,
                self.world.now,
                name,
                deliveries,
                dropped_early=dropped_early,
                missed=missed,
                told=self._told(),
            )
        if committed:
            self.world.commit()

    def _told(self) -> tuple[int, ...]:
        """Webhooks are told of what is on disk: here of the rows of this shard, and no other."""
        return (self.world.shard.committed,)

    @rule(
        name=names,
        count=st.integers(1, 3),
        outcome=st.none() | st.sampled_from(TryOutcome),
        again=st.booleans(),
    )
    def try_deliveries(self, name, count, outcome, again):
        """Those that are due are sent; without an outcome, the answers are still to come."""
        webhook = self.world.shard.webhooks.find(name)
        if webhook is None:
            return
        for _ in range(count):
            delivery = webhook.pop_due(self.world.now.wall_ms)
            if delivery is None:
                return
            assert webhook.pending[delivery.number] == delivery, "it does not wait any more"
            if outcome is not None:
                self._note(webhook, delivery, outcome)
                if again:
                    # The answer to a try before this one comes late.
                    self._note(webhook, delivery, TryOutcome.RETRYING)

    def _note(self, webhook: Webhook, delivery: Delivery, outcome: TryOutcome) -> None:
        now = self.world.now
        next_ms = now.wall_ms + 5_000 if outcome is TryOutcome.RETRYING else 0
        one = Try(
            delivery.number,
            delivery.id,
            delivery.type,
            now.wall_ms,
            7,
            delivery.tries + 1,
            500,
            outcome,
            "it broke",
            next_ms,
        )
        decide_note_tries(self.world.shard, now, webhook.name, [one])

    @invariant()
    def webhooks_are_told_of_what_is_on_disk(self):
        """G27: where to resume never runs ahead of the journal, also after a crash."""
        shard = self.world.shard
        for offset in shard.webhooks.told():
            assert offset <= shard.committed

    def check_webhooks(self) -> None:
        """G27: after a start, all that waits is due sooner or later; nothing is under way."""
        for webhook in self.world.shard.webhooks.by_name.values():
            waiting = list(webhook.pending)
            found = []
            while (delivery := webhook.pop_due(self.world.now.wall_ms + RETRY_MS_MAX)) is not None:
                found.append(delivery.number)
            assert sorted(found) == waiting, "a delivery is never tried again"
