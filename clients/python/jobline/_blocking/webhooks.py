# Generated from jobline/_asynchronous/webhooks.py by `make gen`: change that file instead.
"""The operators' calls on webhooks, blocking: typed arguments in, dataclasses out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from jobline import _webhook_requests as requests
from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of
from jobline._blocking.connection import Connection
from jobline._blocking.pages import pages_of
from jobline._keywords import spelled_out
from jobline._webhook_requests import WebhookChanges, WebhookHow
from jobline._webhook_values import Webhook, WebhookDelivery, WebhookWithSecret
from jobline.v1 import webhook_service_pb2, webhook_service_pb2_grpc


class WebhookApi:
    """`client.webhooks`: HTTP calls that tell of events, and signed ones that make jobs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> webhook_service_pb2_grpc.WebhookServiceStub:
        return self._connection.stub(webhook_service_pb2_grpc.WebhookServiceStub)

    @spelled_out(WebhookHow)
    def create(
        self,
        webhook: str,
        url: str = "",
        *,
        incoming_queue: str = "",
        secret: str = "",
        reason: str = "",
        **how: Unpack[WebhookHow],
    ) -> WebhookWithSecret:
        """Creates a webhook, and returns its secret, which is not shown again:
        `create("billing", "https://example.com/hook", events=["dead"])`. Raises WebhookExists.

        - `url`: where events are sent, by POST; or `incoming_queue`: the queue to which calls of
          `POST /hooks/{queue}` push.
        - `secret`: "whsec_" and 24 … 64 bytes as base64; by default a random one.
        - `events`: the kinds of events; by default all ends of jobs: "completed", "dead",
          "cancelled" and "expired".
        - `queue`: a pattern of queues: "mail-*"; `names`, `tags`: only jobs with one of them.
        - `disabled`: nothing is sent or accepted.
        """
        request = requests.create_webhook(
            webhook, url, incoming_queue, how, secret=secret, reason=reason
        )
        response = self._connection.write(self._stub.CreateWebhook, request)
        made = Webhook.from_message(response.webhook)
        return WebhookWithSecret(webhook=made, secret=response.secret)

    def get(self, webhook: str) -> Webhook:
        """Returns one webhook. Raises WebhookNotFound."""
        request = message_of(webhook_service_pb2.GetWebhookRequest, webhook=webhook)
        response = self._connection.read(self._stub.GetWebhook, request)
        return Webhook.from_message(response.webhook)

    def list(self, prefix: str = "", *, page_size: int = PAGE_SIZE) -> Iterator[Webhook]:
        """Yields all webhooks by name, or those whose name starts with `prefix`."""
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListWebhooks,
                message_of(
                    webhook_service_pb2.ListWebhooksRequest,
                    page_size=page_size,
                    page_token=token,
                    name_prefix=prefix,
                ),
            )
        ):
            for webhook in page.webhooks:
                yield Webhook.from_message(webhook)

    @spelled_out(WebhookChanges)
    def update(
        self, webhook: str, *, reason: str = "", **changes: Unpack[WebhookChanges]
    ) -> Webhook:
        """Changes the settings given as keywords, None taking one back to its default:
        `update("billing", disabled=False)` also enables one that its receiver disabled. Raises
        WebhookNotFound.
        """
        request = requests.update_webhook(webhook, changes, reason=reason)
        response = self._connection.write(self._stub.UpdateWebhook, request)
        return Webhook.from_message(response.webhook)

    def delete(self, webhook: str, *, reason: str = "") -> None:
        """Deletes a webhook, with the deliveries that wait. Raises WebhookNotFound."""
        request = message_of(
            webhook_service_pb2.DeleteWebhookRequest, webhook=webhook, reason=reason
        )
        self._connection.write(self._stub.DeleteWebhook, request)

    def test(self, webhook: str, *, reason: str = "") -> str:
        """Has an event of the type "webhook.test" sent; returns its `webhook-id`, which
        `deliveries` shows. Raises WebhookNotFound.
        """
        request = message_of(webhook_service_pb2.TestWebhookRequest, webhook=webhook, reason=reason)
        response = self._connection.write(self._stub.TestWebhook, request)
        return response.delivery_id

    def rotate_secret(
        self, webhook: str, *, secret: str = "", reason: str = ""
    ) -> WebhookWithSecret:
        """Gives a webhook a new secret, by default a random one; the one before is used beside it
        for a day. That of "_jobs" signs what is sent to the URLs of jobs. Raises WebhookNotFound.
        """
        request = message_of(
            webhook_service_pb2.RotateWebhookSecretRequest,
            webhook=webhook,
            secret=secret,
            reason=reason,
        )
        response = self._connection.write(self._stub.RotateWebhookSecret, request)
        changed = Webhook.from_message(response.webhook)
        return WebhookWithSecret(webhook=changed, secret=response.secret)

    def deliveries(self, webhook: str, *, page_size: int = PAGE_SIZE) -> Iterator[WebhookDelivery]:
        """Yields the last 20 tries to deliver, the newest first. Raises WebhookNotFound."""
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListWebhookDeliveries,
                message_of(
                    webhook_service_pb2.ListWebhookDeliveriesRequest,
                    webhook=webhook,
                    page_size=page_size,
                    page_token=token,
                ),
            )
        ):
            for delivery in page.deliveries:
                yield WebhookDelivery.from_message(delivery)
