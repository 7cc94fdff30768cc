"""The app, as Django finds it."""

from __future__ import annotations

from django.apps import AppConfig


class OutboxConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """Tables `jobline_outbox` and `jobline_fence`, without models."""

    name = "jobline.outbox.django"
    label = "jobline_outbox"
    verbose_name = "Jobline"
