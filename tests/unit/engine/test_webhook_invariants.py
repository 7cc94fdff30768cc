"""The invariants of webhooks notice when they are broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.decide.webhooks import decide_create_webhook, decide_queue_deliveries
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from jobline_server.engine.webhook import Delivery, Try, TryOutcome, WebhookSettings
from jobline_server.engine.webhook_invariants import webhooks_add_up, webhooks_get_events

URL = WebhookSettings(url="http://example.com/")
TRY = Try(1, "a", "job.completed", 1, 2, 1, 500, TryOutcome.FAILED)


@pytest.fixture
def webhook(world):
    """A webhook for which two events wait, beside one of a queue; all found right."""
    made = decide_create_webhook(world.shard, world.now, "w", URL, b"secret", told=(0,))
    incoming = WebhookSettings(incoming_queue="mail")
    decide_create_webhook(world.shard, world.now, "in", incoming, b"secret")
    waiting = [Delivery(0, name, "job.completed", b"x", 5) for name in ("a", "b")]
    decide_queue_deliveries(world.shard, world.now, "w", waiting)
    assert (webhooks_add_up(world.shard), webhooks_get_events(world.shard)) == ("", "")
    return made


def test_delivery_of_a_webhook_that_is_gone_is_noticed(world, webhook):
    del world.shard.webhooks.by_name["w"]
    assert webhooks_add_up(world.shard).endswith("are kept, webhooks have []")


def test_queue_with_a_webhook_that_is_gone_is_noticed(world, webhook):
    del world.shard.webhooks.by_name["in"]
    assert "webhooks of queues ['mail'] are kept" in webhooks_add_up(world.shard)


def test_number_that_is_given_twice_is_noticed(world, webhook):
    webhook.number = next(iter(webhook.pending))
    assert "are not distinct ids" in webhooks_add_up(world.shard)


def test_webhooks_of_different_shards_are_noticed(world, webhook):
    world.shard.webhooks.by_name["in"].told = (1, 2)
    assert "different shards" in webhooks_add_up(world.shard)


def test_webhook_under_another_name_is_noticed(world, webhook):
    webhook.name = "x"
    assert webhooks_add_up(world.shard) == "webhook w is named x"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pending_bytes", 1, "does not count its 1 bytes"),
        ("ids", {"a"}, "knows ['a']"),
        ("tries", (TRY,) * (limits.WEBHOOK_TRIES_KEPT + 1), "keeps 21 tries"),
        ("dropped", -1, "below zero"),
        ("disabled_reason", "410", "says why it is"),
        ("armed", {1: 5}, "of which not all wait"),
        ("armed", {}, None),
        ("_due", [], "is looked at at None"),
    ],
)
def test_counts_that_are_wrong_are_noticed(world, webhook, name, value, told):
    """A delivery that is being sent is not armed, which is right."""
    setattr(webhook, name, value)
    problem = webhooks_add_up(world.shard)
    assert problem == "" if told is None else told in problem


def test_deliveries_out_of_order_are_noticed(world, webhook):
    webhook.pending = dict(reversed(webhook.pending.items()))
    assert "in another order" in webhooks_add_up(world.shard)


def test_more_deliveries_than_may_wait_are_noticed(world, webhook, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_MAX", 1)
    assert webhooks_add_up(world.shard) == "webhook w has 2 deliveries that wait"


def test_webhook_for_which_no_events_are_made_is_noticed(world, webhook):
    world.shard.load.tells_webhooks = False
    assert webhooks_get_events(world.shard) == "there are webhooks, and no events for them"
    webhook.settings = replace(URL, url="")
    assert "no events for them" in webhooks_get_events(world.shard), "deliveries wait"


@pytest.mark.parametrize("is_lot", [True, False])
def test_job_for_whose_webhook_no_events_are_made_is_noticed(world, is_lot):
    options = JobOptions(rules=JobRules(webhook="http://example.com/"))
    if is_lot:
        world.plain(b"x", options=options)
    else:
        world.row(rules=options.rules)
    assert webhooks_get_events(world.shard) == ""
    world.shard.load.tells_webhooks = False
    assert webhooks_get_events(world.shard).startswith("a job has a webhook")
