"""What an operation was asked: fields that are not to be seen go, wherever they stand."""

from __future__ import annotations

import pytest

from jobline.v1 import admin_service_pb2 as pb
from jobline.v1 import webhook_service_pb2
from jobline_server.engine.operations import Operation
from jobline_server.rpc.convert.asked import as_json, without
from jobline_server.rpc.convert.operations import fill
from jobline_server.runtime.calls.operations import OperationView


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ('{"id":"7"}', '{"id":"7"}'),
        ('{"filter":{"queue":"q","headers":{"a":"b"}}}', '{"filter":{"queue":"q"}}'),
        ('{"jobs":[{"headers":{}},{"name":"n"}]}', '{"jobs":[{},{"name":"n"}]}'),
        ('{"headers":{"headers":"x"}}', "{}"),
        # Cut: the first of them is where it ends.
        ('{"q":"e","headers":{"a":"b', '{"q":"e",'),
        ('{"error_contains":"x","headers":{"a', "{"),
        # Nothing that it says is taken for a field.
        ('{"name":"\\"headers\\":1","limit":5', '{"name":"\\"headers\\":1","limit":5'),
        ("", ""),
    ],
)
def test_fields_are_left_out(asked: str, left: str) -> None:
    assert without(asked, ("headers", "error_contains")) == left


def test_the_url_of_a_webhook_is_not_kept() -> None:
    request = webhook_service_pb2.UpdateWebhookRequest(webhook="billing")
    request.settings.url, request.settings.queue = "http://example.com/secret", "q"
    assert as_json(request) == '{"webhook":"billing","settings":{"queue":"q"}}'


@pytest.mark.parametrize(
    ("verb", "left"),
    [
        ("CreateWebhook", '{"webhook":"billing","settings":{}}'),
        ("UpdateWebhook", '{"webhook":"billing","settings":{}}'),
        ("CreateSchedule", '{"webhook":"billing","settings":{"url":"http://example.com/secret"}}'),
    ],
)
def test_a_url_that_was_kept_is_not_shown(verb: str, left: str) -> None:
    """Operations of older servers have it; headers of this name are none."""
    asked = '{"webhook":"billing","settings":{"url":"http://example.com/secret"}}'
    message = pb.Operation()
    fill(message, OperationView(Operation("1", verb, "me", 1, request=asked), 1, "", False, ""))
    assert message.request == left
