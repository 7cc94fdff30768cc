"""Hypothesis strategies for webhooks, their deliveries and tries."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine.webhook import Delivery, Secrets, Try, TryOutcome, WebhookSettings
from tests.storage.value_strategies import ids, moments, text

webhook_settings = st.builds(
    WebhookSettings,
    url=text,
    incoming_queue=text,
    events=st.lists(st.integers(1, 99), max_size=3).map(tuple),
    queue=text,
    names=st.lists(text, max_size=2).map(tuple),
    tags=st.lists(text, max_size=2).map(tuple),
    disabled=st.booleans(),
)
webhook_secrets = st.builds(Secrets, st.binary(max_size=8), st.binary(max_size=8), moments)
webhook_deliveries = st.builds(
    Delivery,
    number=ids,
    id=text,
    type=text,
    body=st.binary(max_size=8),
    due_ms=moments,
    url=text,
    tries=st.integers(0, 8),
)
webhook_tries = st.builds(
    Try,
    number=ids,
    id=text,
    type=text,
    at_ms=moments,
    took_ms=moments,
    attempt=st.integers(1, 8),
    status=st.integers(0, 599),
    outcome=st.sampled_from(TryOutcome),
    error=text,
    next_ms=moments,
)
