"""`jobline webhook …`: HTTP calls that tell of events, and signed ones that make jobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobline._webhook_values import Webhook, WebhookDelivery, WebhookWithSecret
from jobline.cli import completion
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.durations import show_moment
from jobline.cli.output import Column

Name = Annotated[
    str, typer.Argument(metavar="WEBHOOK", help="The webhook.", autocompletion=completion.webhooks)
]
Prefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help="Only webhooks whose names start with this.")
]
Url = Annotated[str, typer.Argument(metavar="URL", help="Where events are sent.")]
Incoming = Annotated[
    str, typer.Option("--incoming", metavar="QUEUE", help="Or the queue that calls push to.")
]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="KIND", help="A kind of event: dead, queue_paused; again."),
]
OfQueues = Annotated[
    str | None, typer.Option("--queue", metavar="PATTERN", help="Only these queues: 'mail-*'.")
]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="NAME", help="Only jobs with this name; again."),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only jobs with this tag; again.")
]
NewUrl = Annotated[str | None, typer.Option("--url", metavar="URL", help="Where events are sent.")]
Enabled = Annotated[
    bool | None, typer.Option("--enable/--disable", help="Send and accept, or do not.")
]
Secret = Annotated[
    str, typer.Option("--secret", metavar="SECRET", help="whsec_…; by default a random one.")
]


def register(app: typer.Typer) -> None:
    """Adds `webhook` and its verbs."""
    webhooks = typer.Typer(help="Webhooks: create, test, look.", no_args_is_help=True)
    app.add_typer(webhooks, name="webhook", rich_help_panel=QUEUES)
    command(webhooks, "ls")(ls)
    command(webhooks, "get")(get)
    command(webhooks, "create")(create)
    command(webhooks, "update")(update)
    command(webhooks, "test")(send_test)
    command(webhooks, "rotate")(rotate)
    command(webhooks, "deliveries")(deliveries)
    command(webhooks, "rm")(rm)


def ls(cli: Cli, prefix: Prefix = "") -> None:
    """List webhooks."""
    cli.out.items(cli.client.webhooks.list(prefix), plain, COLUMNS, none="No webhooks yet.")


def get(cli: Cli, webhook: Name) -> None:
    """Show one webhook."""
    _show(cli, cli.client.webhooks.get(webhook))


def create(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    webhook: Name,
    url: Url = "",
    *,
    incoming: Incoming = "",
    event: Events = None,
    queue: OfQueues = None,
    name: Names = None,
    tag: Tags = None,
    secret: Secret = "",
    reason: option.Why = "",
) -> None:
    """Create a webhook, and print its secret, which is not shown again."""
    how = _given(events=event, queue=queue, names=name, tags=tag)
    made = cli.client.webhooks.create(
        webhook, url, incoming_queue=incoming, secret=secret, reason=reason, **how
    )
    _show_secret(cli, made)


def update(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    webhook: Name,
    *,
    url: NewUrl = None,
    event: Events = None,
    queue: OfQueues = None,
    name: Names = None,
    tag: Tags = None,
    enable: Enabled = None,
    reason: option.Why = "",
) -> None:
    """Change settings of a webhook: those that are given."""
    disabled = None if enable is None else not enable
    how = _given(url=url, events=event, queue=queue, names=name, tags=tag, disabled=disabled)
    _show(cli, cli.client.webhooks.update(webhook, reason=reason, **how))


def send_test(cli: Cli, webhook: Name, *, reason: option.Why = "") -> None:
    """Send a test event."""
    delivery_id = cli.client.webhooks.test(webhook, reason=reason)
    cli.out.document({"delivery_id": delivery_id}, f"{delivery_id} is sent")


def rotate(cli: Cli, webhook: Name, *, secret: Secret = "", reason: option.Why = "") -> None:
    """Give a webhook a new secret; the one before is used beside it for a day."""
    made = cli.client.webhooks.rotate_secret(webhook, secret=secret, reason=reason)
    _show_secret(cli, made)


def deliveries(cli: Cli, webhook: Name) -> None:
    """Show the last tries to deliver."""
    found = cli.client.webhooks.deliveries(webhook)
    cli.out.items(found, plain, TRIES, none="Nothing was sent yet.")


def rm(cli: Cli, webhook: Name, *, yes: option.Yes = False, reason: option.Why = "") -> None:
    """Delete a webhook, with the deliveries that wait."""
    cli.confirm(f"Delete the webhook {webhook}?", yes=yes, or_else="")
    cli.client.webhooks.delete(webhook, reason=reason)
    cli.out.document({"webhook": webhook}, f"the webhook {webhook} deleted")


def _given(**said: Any) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _show(cli: Cli, webhook: Webhook) -> None:
    cli.out.items([webhook], plain, COLUMNS, none="")


def _show_secret(cli: Cli, made: WebhookWithSecret) -> None:
    text = f"webhook {made.webhook.name}\nsecret  {made.secret}"
    cli.out.document({"webhook": plain(made.webhook), "secret": made.secret}, text)


def _target(webhook: Webhook) -> str:
    settings = webhook.settings
    if settings.incoming_queue:
        return f"→ {settings.incoming_queue}"
    return settings.url or "the URLs of jobs"


def _remarks(webhook: Webhook) -> str:
    if webhook.settings.disabled:
        reason = webhook.disabled_reason
        return f"disabled: {reason}" if reason else "disabled"
    return f"events missed {webhook.missed} times" if webhook.missed else ""


def _answer(delivery: WebhookDelivery) -> str:
    return delivery.error or str(delivery.status)


COLUMNS: list[Column[Webhook]] = [
    Column("webhook", lambda webhook: webhook.name),
    Column("to", _target),
    Column("waiting", lambda webhook: f"{webhook.pending:,}", right=True),
    Column("delivered", lambda webhook: f"{webhook.delivered:,}", right=True),
    Column("failed", lambda webhook: f"{webhook.failed:,}", right=True),
    Column("dropped", lambda webhook: f"{webhook.dropped:,}", right=True),
    Column("", _remarks),
]
TRIES: list[Column[WebhookDelivery]] = [
    Column("at", lambda delivery: show_moment(delivery.at)),
    Column("type", lambda delivery: delivery.type),
    Column("id", lambda delivery: delivery.id),
    Column("try", lambda delivery: str(delivery.attempt), right=True),
    Column("outcome", lambda delivery: delivery.outcome.name.lower()),
    Column("answer", _answer),
    Column("next", lambda delivery: show_moment(delivery.next_at)),
]
