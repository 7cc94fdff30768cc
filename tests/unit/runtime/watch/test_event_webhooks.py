"""What watchers see of webhooks."""

from __future__ import annotations

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.effects import Applied
from jobline_server.engine.webhook import Delivery, Try, TryOutcome
from jobline_server.engine.webhook_entries import WebhookDeleted, WebhookFact, WebhookProgressed
from jobline_server.runtime.watch.events import event_runs

DELIVERED = int(EventKind.EVENT_KIND_WEBHOOK_DELIVERED)
FAILED = int(EventKind.EVENT_KIND_WEBHOOK_FAILED)


def seen(fact: WebhookFact) -> list[tuple[int, str, str, str]]:
    runs = event_runs(0, 5, [Applied(fact, 5, [])])
    shared = [run.shared for run in runs]
    return [(one.kind, one.name, one.queue, one.message) for one in shared]


def a_try(outcome: TryOutcome, error: str = "") -> Try:
    return Try(1, f"msg_{outcome.name}", "t", 1, 2, 1, 503, outcome, error)


def test_only_the_end_of_a_delivery_is_an_event() -> None:
    tries = [a_try(outcome) for outcome in TryOutcome]
    assert seen(WebhookProgressed(9, "w", tries=tries)) == [
        (DELIVERED, "w", "", "msg_DELIVERED"),
        (FAILED, "w", "", "msg_FAILED: 503"),
        (FAILED, "w", "", "msg_GONE: 503"),
    ]
    [(_, _, _, message)] = seen(WebhookProgressed(9, "w", tries=[a_try(TryOutcome.FAILED, "why")]))
    assert message == "msg_FAILED: why"


def test_what_is_never_told_is_an_event() -> None:
    waits = Delivery(1, "msg", "t", b"", 0)
    assert seen(WebhookProgressed(9, "w", queued=[waits])) == []
    lost = seen(WebhookProgressed(9, "w", dropped=[1, 2], dropped_early=3, missed=True))
    assert [kind for kind, *_ in lost] == [FAILED, FAILED]
    assert "5 dropped" in lost[1][3]
    assert seen(WebhookDeleted(9, "w")) == []
