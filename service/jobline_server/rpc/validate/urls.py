"""Checks URLs that the server is to call."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.rpc.validate import fields
from jobline_server.wire.webhook_urls import target_of


def webhook_url(value: str, field: str) -> None:
    """Refuses what is no http or https URL. Where it leads is checked as it is called."""
    fields.required_line(value, field, limits.WEBHOOK_URL_CHARACTERS_MAX)
    try:
        target_of(value)
    except ValueError as error:
        raise fields.invalid(field, str(error)) from None
