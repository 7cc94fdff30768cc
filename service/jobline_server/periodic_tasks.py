"""The list of periodic tasks, with what they need."""

from __future__ import annotations

from jobline_server.background.backups import BackupTask
from jobline_server.background.checkpoints import CheckpointTask
from jobline_server.background.dead_letters import RetryDeadJobs
from jobline_server.background.demands import SampleDemands
from jobline_server.background.housekeeping import (
    DeleteIdleQueues,
    RestoreBallast,
    SendOldStreamsAway,
)
from jobline_server.background.minutes import CloseMinutes
from jobline_server.background.operations import DeleteOldOperations
from jobline_server.background.periodic import PeriodicTask
from jobline_server.background.retention import RetentionTask
from jobline_server.background.server_notes import NoteServer
from jobline_server.background.unhandled import UnhandledNames
from jobline_server.background.webhook_sender import Sender
from jobline_server.background.webhooks import TellWebhooks
from jobline_server.config import Settings
from jobline_server.runtime.backups import Backups
from jobline_server.runtime.ended.auto_retry import AutoRetries
from jobline_server.runtime.ended.disk_space import DiskSpace
from jobline_server.runtime.ended.retention import EndedRetention
from jobline_server.runtime.runtime import Runtime


def make_tasks(
    runtime: Runtime,
    settings: Settings,
    backups: Backups | None = None,
    *,
    version: str,
    moves: bool = True,
) -> list[PeriodicTask]:
    """Returns the tasks of a server, not started. Where the clock `moves` only by hand, streams are
    not sent away: their workers could not come back before a year is over.
    """
    sender = Sender(
        allow_private=settings.webhook_private_networks, user_agent=f"jobline/{version}"
    )
    webhooks = TellWebhooks(runtime.core, runtime.webhooks, runtime.follower, sender)
    runtime.at_stop, runtime.at_end = webhooks.hurry, webhooks.finish
    old_streams = SendOldStreamsAway(
        runtime.streams, round(settings.stream_max_age_seconds * 1_000)
    )
    return [
        # The order in which they are run where a clock is moved by hand: first what looks at a time
        # that is over, and idle queues before retention, which may empty some.
        CloseMinutes(runtime.core, runtime.minutes),
        DeleteIdleQueues(runtime.core),
        CheckpointTask(runtime.checkpoints),
        RetentionTask(runtime.core, EndedRetention(runtime.core, runtime.ended)),
        RetryDeadJobs(runtime.core, AutoRetries(runtime.core, runtime.ended)),
        RestoreBallast(DiskSpace(runtime.core)),
        *([old_streams] if moves else []),
        SampleDemands(runtime.demands),
        UnhandledNames(runtime.core, runtime.streams.notify_unhandled),
        DeleteOldOperations(runtime.core, runtime.operations),
        NoteServer(runtime.core, runtime.streams.presence, int(settings.low_space_bytes)),
        webhooks,
        *([BackupTask(backups, settings.backup_every_seconds)] if backups else []),
    ]
