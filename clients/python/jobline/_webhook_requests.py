"""Messages for `WebhookService`. Pure; both clients send what is made here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from google.protobuf.field_mask_pb2 import FieldMask

from jobline._arguments import member_given, message_of, tags_given
from jobline._enums import EventKind
from jobline._event_kinds import EventKindName
from jobline._keywords import refuse_unknown
from jobline.errors import InvalidArgument
from jobline.v1 import webhook_service_pb2 as pb


class WebhookHow(TypedDict, total=False):
    """Settings of a webhook but where it leads; see `client.webhooks.create`."""

    events: Iterable[EventKindName] | None
    queue: str | None
    names: Iterable[str] | None
    tags: Iterable[str] | None
    disabled: bool | None


class WebhookChanges(WebhookHow, total=False):
    """Settings of a webhook that may change."""

    url: str | None


def create_webhook(
    webhook: str, url: str, incoming_queue: str, how: WebhookHow, *, secret: str, reason: str
) -> pb.CreateWebhookRequest:
    """Returns the request to create a webhook."""
    refuse_unknown(how, WebhookHow.__annotations__, "create")
    settings = _settings({**how, "url": url, "incoming_queue": incoming_queue})
    return message_of(
        pb.CreateWebhookRequest, webhook=webhook, settings=settings, secret=secret, reason=reason
    )


def update_webhook(
    webhook: str, changes: WebhookChanges, *, reason: str
) -> pb.UpdateWebhookRequest:
    """Returns the request to change the settings in `changes`."""
    refuse_unknown(changes, {**WebhookHow.__annotations__, "url": str}, "update")
    if not changes:
        raise InvalidArgument("update() takes settings as keywords")
    return message_of(
        pb.UpdateWebhookRequest,
        webhook=webhook,
        settings=_settings(changes),
        update_mask=FieldMask(paths=sorted(changes)),
        reason=reason,
    )


def _settings(how: Any) -> pb.WebhookSettings:
    given = {name: value for name, value in how.items() if value is not None}
    if "events" in given:
        events = given["events"]
        events = [events] if isinstance(events, (str, int)) else events
        given["events"] = [member_given("events", EventKind, kind) for kind in events]
    for name in ("names", "tags"):
        if name in given:
            given[name] = tags_given(name, given[name])
    return message_of(pb.WebhookSettings, **given)
