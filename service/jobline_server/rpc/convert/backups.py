"""Backups as messages."""

from __future__ import annotations

from jobline.v1 import admin_service_pb2 as pb
from jobline_server.runtime.backups import BackupView
from jobline_server.wire.times import fill_time


def fill_backup(message: pb.BackupStatus, view: BackupView) -> None:
    """Fills in what becomes of a backup."""
    message.state = pb.BackupState.ValueType(view.state.value)
    message.name = view.name
    message.step = view.step
    message.done = view.done
    message.total = view.total
    message.stored_bytes = view.stored_bytes
    message.problem = view.why
    for field, at_ms in (
        (message.started_at, view.started_ms),
        (message.ended_at, view.ended_ms),
        (message.taken_at, view.at_ms),
    ):
        if at_ms:
            fill_time(field, at_ms)
