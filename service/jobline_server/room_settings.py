"""Converts the server's settings into those of its rooms."""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.config import Settings
from jobline_server.engine.values import AckLevel
from jobline_server.rpc.admission import CallLimits
from jobline_server.rpc.client_rates import ClientRates
from jobline_server.rpc.limits import CLIENTS_MAX
from jobline_server.runtime.runtime import RuntimeSettings


def call_limits(settings: Settings) -> CallLimits:
    """Returns the bounds on open calls."""
    return CallLimits(
        calls=settings.max_calls,
        streams=settings.max_streams,
        pulls=settings.max_pulls,
        waiters=settings.max_waiters,
        watchers=settings.max_watchers,
        scalers=settings.max_scalers,
    )


def client_rates(settings: Settings, clock: Callable[[], float]) -> ClientRates | None:
    """Returns the rates at which clients may push; None: any."""
    rate, burst = settings.client_rate, settings.client_burst
    if not rate:
        return None
    return ClientRates(rate, burst or rate, clock, clients_max=CLIENTS_MAX)


def runtime_settings(settings: Settings) -> RuntimeSettings:
    """Returns the settings of the runtime."""
    return RuntimeSettings(
        heartbeat_ms=round(settings.heartbeat_seconds * 1_000),
        grace_ms=round(settings.disconnect_grace_seconds * 1_000),
        journal_bytes_max=int(settings.checkpoint_journal_bytes),
        waiting_max=settings.max_waiting_jobs,
        waiting_bytes_max=int(settings.max_waiting_bytes),
        keys_max=settings.max_keys,
        requests_max=settings.max_request_ids,
        calls_max=settings.max_producer_calls,
        batch_kept_ms=round(settings.batch_retention_seconds * 1_000),
        worker_limit_ms_max=settings.worker_limit_seconds * 1_000,
    )


def default_level(settings: Settings) -> AckLevel | None:
    """Returns the ack level of pushes that set none; None: as the queue has it, or FSYNCED."""
    level = AckLevel[settings.default_ack_level.upper()]
    return None if level is AckLevel.FSYNCED else level
