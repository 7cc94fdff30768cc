"""What a checkpoint keeps of webhooks, and of jobs with one of their own, comes back."""

from __future__ import annotations

import pytest

from jobline_server.engine import invariants
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.webhooks import (
    decide_create_webhook,
    decide_delete_webhook,
    decide_queue_deliveries,
)
from jobline_server.engine.job_columns import NO_ROWS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.engine.webhook import Delivery, WebhookSettings
from jobline_server.storage.store import ItemKind
from tests.pushed_rows import NewJob, rows_of
from tests.shard_image import image_of
from tests.storage.recovery_world import SHARD, World

URL = "https://example.com/"
NAMED = JobOptions(rules=JobRules(webhook=URL))


def queue(world: World, name: str, *events: str) -> None:
    waiting = [Delivery(0, event, "job.completed", b"x", 5) for event in events]
    decide_queue_deliveries(world.shard, world.now, name, waiting)


def create(world: World, name: str) -> None:
    decide_create_webhook(world.shard, world.now, name, WebhookSettings(url=URL), b"secret")


@pytest.mark.parametrize("is_lot", [True, False])
@pytest.mark.parametrize("options", [NAMED, DEFAULT_OPTIONS])
def test_job_with_a_webhook_is_reloaded_with_it(options: JobOptions, is_lot: bool) -> None:
    """No fact tells of it any more, and still its end is told; without one, nothing is."""
    world = World()
    rows = NO_ROWS if is_lot else rows_of([NewJob(b"x", options)])
    payloads = Payloads.of([b"x"] if is_lot else [])
    job_id = decide_push(world.shard, world.now, Push("q", options, rows, payloads)).first_id
    world.finish_checkpoint(truncate=True)
    world.recover()
    found = world.shard.lots.find(job_id) if is_lot else world.shard.jobs.get(job_id)
    assert found is not None
    assert found.options == options
    assert world.shard.load.tells_webhooks == (options is NAMED)
    invariants.check(world.shard)


def test_checkpoint_has_the_webhooks_that_are_there() -> None:
    """One that was deleted goes with its deliveries; what was being sent is due again."""
    world = World()
    for name in ("one", "gone"):
        create(world, name)
        queue(world, name, "a", "b")
    world.finish_checkpoint(truncate=True)
    decide_delete_webhook(world.shard, world.now, "gone")
    webhook = world.shard.webhooks.by_name["one"]
    assert webhook.pop_due(world.now.wall_ms) is not None
    queue(world, "one", "a", "c")
    for truncate in (False, True):
        world.finish_checkpoint(truncate=truncate)
        before = image_of(world.shard)["webhooks"]
        world.recover()
        assert image_of(world.shard)["webhooks"] == before
        (webhook,) = world.shard.webhooks.by_name.values()
        assert [one.id for one in webhook.pending.values()] == ["a", "b", "c"]
        assert sorted(webhook.armed) == list(webhook.pending)
    assert len(world.store.item_keys(SHARD, ItemKind.WEBHOOK_DELIVERY)) == 3


def test_deliveries_of_a_damaged_webhook_are_not_sent_to_another_of_its_name() -> None:
    """They go with it: also from the store, where the next one of the name would find them."""
    world = World()
    create(world, "w")
    queue(world, "w", "secret")
    world.finish_checkpoint(truncate=True)
    (key,) = world.store.item_keys(SHARD, ItemKind.WEBHOOK)
    world.store.rotten = {(ItemKind.WEBHOOK, key)}
    world.recover()
    world.store.rotten.clear()
    world.store.forget(SHARD, ItemKind.WEBHOOK, key)
    assert not world.shard.webhooks.deliveries
    create(world, "w")
    world.finish_checkpoint(truncate=True)
    world.recover()
    assert not world.shard.webhooks.by_name["w"].pending
    assert not world.store.item_keys(SHARD, ItemKind.WEBHOOK_DELIVERY)
