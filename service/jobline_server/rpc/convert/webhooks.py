"""Converts webhooks."""

from __future__ import annotations

from enum import IntEnum

from jobline.v1 import webhook_service_pb2 as pb
from jobline.v1.event_pb2 import EventKind
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.webhook import JOBS_WEBHOOK, Try, WebhookSettings
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.convert.masks import masked, paths_of
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_tags
from jobline_server.rpc.validate.urls import webhook_url
from jobline_server.runtime.calls.webhooks import WebhookView
from jobline_server.runtime.watch.event_webhooks import NEVER_TOLD
from jobline_server.wire import signatures
from jobline_server.wire.times import fill_time

PATHS = paths_of(pb.WebhookSettings.DESCRIPTOR)
_Kind = IntEnum("_Kind", {name: number for name, number in EventKind.items() if number})  # type: ignore[misc]  # made of the protocol's
_ENDS = (
    EventKind.EVENT_KIND_COMPLETED,
    EventKind.EVENT_KIND_DEAD,
    EventKind.EVENT_KIND_CANCELLED,
    EventKind.EVENT_KIND_EXPIRED,
)
_SECRET_CHARACTERS_MAX = 128


def new_name(value: str) -> str:
    """Returns the name of a webhook that users may make: as that of a queue."""
    return fields.queue_name(value, "webhook")


def webhook_name(value: str) -> str:
    """Returns the name of a webhook, which may be the server's own."""
    return value if value == JOBS_WEBHOOK else new_name(value)


def secret_of(value: str) -> bytes:
    """Returns the bytes of a secret; none, if it is not given."""
    if not value:
        return b""
    fields.single_line(value, "secret", _SECRET_CHARACTERS_MAX)
    secret = signatures.secret_of(value)
    least, most = limits.WEBHOOK_SECRET_BYTES_MIN, limits.WEBHOOK_SECRET_BYTES_MAX
    if secret is None or not least <= len(secret) <= most:
        message = f"must be {signatures.PREFIX} and {least} to {most} bytes as base64"
        raise fields.invalid("secret", message)
    return secret


def skip_of(cursor: str) -> int:
    """Returns how many tries are on the pages before."""
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > 2:  # 20 at most
        raise fields.invalid("page_token", "is not of this list")
    return int(cursor)


def settings_of(request: pb.CreateWebhookRequest) -> WebhookSettings:
    """Returns the settings of a new webhook."""
    if not request.HasField("settings"):
        raise fields.invalid("settings", "is required")
    return _checked(request.settings)


def changed(request: pb.UpdateWebhookRequest, before: WebhookSettings) -> WebhookSettings:
    """Returns the settings of a webhook after an update."""
    if not request.HasField("settings") and not request.update_mask.paths:
        raise fields.invalid("settings", "is required")
    named = masked(request.update_mask, PATHS)
    message = pb.WebhookSettings()
    if named is None:
        message.CopyFrom(request.settings)
        message.incoming_queue = message.incoming_queue or before.incoming_queue
        if not message.incoming_queue:
            message.url = message.url or before.url
    else:
        _fill_settings(message, before)
        for name in sorted(named):
            message.ClearField(name)  # type: ignore[arg-type]  # the stub lists literals
        part = pb.WebhookSettings()
        part.CopyFrom(request.settings)
        for field in part.DESCRIPTOR.fields:
            if field.name not in named:
                part.ClearField(field.name)  # type: ignore[arg-type]  # the stub lists literals
        message.MergeFrom(part)
    return _checked(message)


def check_outgoing(view: WebhookView) -> None:
    """Refuses to send to a webhook that has no URL."""
    if not view.settings.url:
        raise fields.invalid("webhook", "is an incoming webhook: nothing is sent to it")


def _checked(message: pb.WebhookSettings) -> WebhookSettings:
    try:
        return _settings(message)
    except Refused as refused:
        raise fields.within("settings", refused) from None


def _settings(message: pb.WebhookSettings) -> WebhookSettings:
    if bool(message.url) == bool(message.incoming_queue):
        raise fields.invalid("url", "exactly one of this and incoming_queue is required")
    if message.incoming_queue:
        fields.queue_name(message.incoming_queue, "incoming_queue")
        for name in ("events", "queue", "names", "tags"):
            if getattr(message, name):
                raise fields.invalid(name, "is for a webhook with a url")
    else:
        webhook_url(message.url, "url")
    fields.single_line(message.queue, "queue", limits.NAME_CHARACTERS_MAX)
    _check_lines(message.names, "names", limits.NAME_CHARACTERS_MAX)
    check_tags(message.tags, "tags")
    return WebhookSettings(
        url=message.url,
        incoming_queue=message.incoming_queue,
        events=_events(message),
        queue=message.queue,
        names=tuple(sorted(set(message.names))),
        tags=tuple(sorted(set(message.tags))),
        disabled=message.disabled,
    )


def _check_lines(values: list[str] | object, field: str, characters_max: int) -> None:
    fields.at_most(values, field, limits.WEBHOOK_FILTERS_MAX)  # type: ignore[arg-type]  # repeated
    fields.single_lines(values, field, characters_max)  # type: ignore[arg-type]  # repeated


def _events(message: pb.WebhookSettings) -> tuple[int, ...]:
    fields.at_most(message.events, "events", len(_Kind))
    for index, kind in enumerate(message.events):
        field = f"events[{index}]"
        if fields.enum_member(kind, field, _Kind, but=NEVER_TOLD) is None:
            raise fields.invalid(field, "is not a known value")
        if (message.names or message.tags) and kind not in _ENDS:
            raise fields.invalid(field, "with names or tags, only ends of jobs are told")
    return tuple(sorted(set(message.events)))


def _fill_settings(message: pb.WebhookSettings, settings: WebhookSettings) -> None:
    message.url = settings.url
    message.incoming_queue = settings.incoming_queue
    message.events.extend(map(EventKind.ValueType, settings.events))
    message.queue = settings.queue
    message.names.extend(settings.names)
    message.tags.extend(settings.tags)
    message.disabled = settings.disabled


def fill_webhook(message: pb.Webhook, view: WebhookView) -> None:
    """Fills a Webhook message."""
    message.name = view.name
    message.settings.SetInParent()
    _fill_settings(message.settings, view.settings)
    message.disabled_reason = view.disabled_reason
    message.pending = view.pending
    message.delivered = view.delivered
    message.failed = view.failed
    message.dropped = view.dropped
    message.missed = view.missed
    if view.previous_until_ms:
        fill_moment(message.previous_secret_until, view.previous_until_ms)
    fill_moment(message.created_at, view.created_ms)
    fill_moment(message.changed_at, view.changed_ms)


def fill_try(message: pb.WebhookDelivery, one: Try) -> None:
    """Fills a WebhookDelivery message."""
    message.id = one.id
    message.type = one.type
    fill_moment(message.at, one.at_ms)
    message.took.SetInParent()
    fill_time(message.took, one.took_ms)
    message.attempt = one.attempt
    message.status = one.status
    message.outcome = pb.WebhookOutcome.ValueType(one.outcome)
    message.error = one.error
    if one.next_ms:
        fill_moment(message.next_at, one.next_ms)
