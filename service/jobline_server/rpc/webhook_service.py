"""WebhookService: HTTP calls that tell of events, and signed ones that make jobs."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobline.v1 import webhook_service_pb2 as pb
from jobline_server.rpc.convert import operations, queues, selection, webhooks
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.guard import Context
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit
from jobline_server.wire.signatures import shown_secret


class WebhookService:
    """Serves webhooks from the runtime, and changes them through it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._calls = runtime.webhooks

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def CreateWebhook(
        self, request: pb.CreateWebhookRequest, context: Context
    ) -> pb.CreateWebhookResponse:
        """Creates a webhook."""
        name = webhooks.new_name(request.webhook)
        settings = webhooks.settings_of(request)
        secret = webhooks.secret_of(request.secret) or self._calls.new_secret()
        audit = self._audit(request, context)
        view = await self._calls.create_webhook(name, settings, secret, audit)
        response = pb.CreateWebhookResponse(
            secret=shown_secret(secret), operation_id=audit.operation_id
        )
        webhooks.fill_webhook(response.webhook, view)
        return response

    async def GetWebhook(
        self, request: pb.GetWebhookRequest, _context: Context
    ) -> pb.GetWebhookResponse:
        """Returns one webhook."""
        response = pb.GetWebhookResponse()
        view = self._calls.get_webhook(webhooks.webhook_name(request.webhook))
        webhooks.fill_webhook(response.webhook, view)
        return response

    async def ListWebhooks(
        self, request: pb.ListWebhooksRequest, _context: Context
    ) -> pb.ListWebhooksResponse:
        """Lists webhooks by name."""
        views, token = self._calls.list_webhooks(
            page_size=selection.page_size(request.page_size),
            page_token=cursor_of(request),
            prefix=queues.name_prefix(request.name_prefix),
        )
        response = pb.ListWebhooksResponse(next_page_token=token_of(request, token))
        for view in views:
            webhooks.fill_webhook(response.webhooks.add(), view)
        return response

    async def UpdateWebhook(
        self, request: pb.UpdateWebhookRequest, context: Context
    ) -> pb.UpdateWebhookResponse:
        """Changes settings of a webhook."""
        name = webhooks.new_name(request.webhook)
        audit = self._audit(request, context)
        change = partial(webhooks.changed, request)
        view = await self._calls.update_webhook(name, change, audit)
        response = pb.UpdateWebhookResponse(operation_id=audit.operation_id)
        webhooks.fill_webhook(response.webhook, view)
        return response

    async def DeleteWebhook(
        self, request: pb.DeleteWebhookRequest, context: Context
    ) -> pb.DeleteWebhookResponse:
        """Deletes a webhook."""
        name, audit = webhooks.webhook_name(request.webhook), self._audit(request, context)
        await self._calls.delete_webhook(name, audit)
        return pb.DeleteWebhookResponse(operation_id=audit.operation_id)

    async def TestWebhook(
        self, request: pb.TestWebhookRequest, context: Context
    ) -> pb.TestWebhookResponse:
        """Has a test event sent."""
        name = webhooks.new_name(request.webhook)
        webhooks.check_outgoing(self._calls.get_webhook(name))
        audit = self._audit(request, context)
        delivery_id = await self._calls.test_webhook(name, audit)
        return pb.TestWebhookResponse(delivery_id=delivery_id, operation_id=audit.operation_id)

    async def RotateWebhookSecret(
        self, request: pb.RotateWebhookSecretRequest, context: Context
    ) -> pb.RotateWebhookSecretResponse:
        """Gives a webhook a new secret."""
        name = webhooks.webhook_name(request.webhook)
        secret = webhooks.secret_of(request.secret) or self._calls.new_secret()
        audit = self._audit(request, context)
        view = await self._calls.rotate_secret(name, secret, audit)
        response = pb.RotateWebhookSecretResponse(
            secret=shown_secret(secret), operation_id=audit.operation_id
        )
        webhooks.fill_webhook(response.webhook, view)
        return response

    async def ListWebhookDeliveries(
        self, request: pb.ListWebhookDeliveriesRequest, _context: Context
    ) -> pb.ListWebhookDeliveriesResponse:
        """Lists the last tries."""
        tries, after = self._calls.list_tries(
            webhooks.webhook_name(request.webhook),
            page_size=selection.page_size(request.page_size),
            skip=webhooks.skip_of(cursor_of(request)),
        )
        token = token_of(request, str(after) if after else "")
        response = pb.ListWebhookDeliveriesResponse(next_page_token=token)
        for one in tries:
            webhooks.fill_try(response.deliveries.add(), one)
        return response
