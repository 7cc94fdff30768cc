"""The calls, in their order: many of the later ones end or delete what they meet.

A row has an RPC, what is said of the jobs that it meets, and its request in protobuf JSON, made of
the world that was filled. `EXEMPT` names the RPCs that producers and workers call, each for a few
jobs, those about webhooks, of which there are at most a hundred, and those about backups, which
only begin one and ask for it; every other one must have rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.million.worlds import (
    BATCHED,
    BLOCKED,
    DEAD,
    DONE,
    EXPIRED,
    GROUPED,
    KEY,
    KINDS,
    LATER,
    OWN,
    PARENTS,
    READY,
    WORDS,
    World,
)

WORK = ("Push", "Pull", "Ack", "Fail", "Release", "Extend", "Stream")
EXEMPT = frozenset(
    {
        *(f"JobService/{verb}" for verb in WORK),
        *(f"WebhookService/{verb}Webhook" for verb in ("Create", "Get", "Update", "Delete")),
        "WebhookService/TestWebhook",
        *(f"WebhookService/{rest}" for rest in ("ListWebhooks", "ListWebhookDeliveries")),
        "WebhookService/RotateWebhookSecret",
        "FlowService/PushFlow",
        *("AdminService/Backup", "AdminService/GetBackup"),
    }
)
IDS = 10_000
PAGE = 1_000
SCHEDULE, LIMITER, GROUP, OTHER = "nightly", "api", "g7", "other"
LATE = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}"
EVERYTHING: dict[str, Any] = {"all": True}
LEFT_STATES = ["JOB_STATE_COMPLETED", "JOB_STATE_CANCELLED"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `request` makes its request."""

    rpc: str
    what: str
    request: Callable[[World], dict[str, Any]]

    @property
    def key(self) -> str:
        """Names the call, for an undo."""
        return f"{self.rpc}, {self.what}"


def _call(rpc: str, what: str, **fields: Any) -> Call:
    """Returns a call whose request does not depend on ids."""
    return Call(rpc, what, lambda _world: fields)


def _of(rpc: str, queue: str, **fields: Any) -> Call:
    """Returns a call about a queue."""
    return _call(rpc, WORDS[queue], queue=queue, **fields)


def _bulk(verb: str, queue: str, *, dry_run: bool = False, **more: Any) -> Call:
    """Returns a call on all jobs of a queue."""
    chosen = {"filter": {"queue": queue, **more}}
    return _call(f"JobAdminService/{verb}Jobs", WORDS[queue], jobs=chosen, dryRun=dry_run)


def _undo(rpc: str, what: str) -> Call:
    key = f"{rpc}, {what}"
    verb = rpc.rpartition("/")[2]
    return Call(
        "AdminService/UndoOperation",
        f"{verb}, {what}",
        lambda world: {"operationId": world.operations[key]},
    )


def _looks() -> list[Call]:
    """Lists and gets; nothing that they find is everything, or nothing."""
    rows = [
        _call("AdminService/GetStats", "all"),
        _call("AdminService/ListWorkers", "none", pageSize=PAGE),
        _call("AdminService/ListHandlers", "none", pageSize=PAGE),
        _call("QueueService/ListQueues", "all", pageSize=PAGE),
        _call("QueueService/GetQueueHistory", "all"),
        _of("QueueService/GetQueueHistory", READY),
        _of("QueueService/ListGroups", GROUPED, pageSize=PAGE),
        _call("DeadLetterService/GetDeadLetterStats", "all"),
        _call("JobService/Watch", "all"),
        _call("BatchService/ListBatches", "all", pageSize=PAGE),
        Call("BatchService/GetBatch", WORDS[BATCHED], lambda world: {"id": str(world.batch_id)}),
    ]
    for queue in KINDS:
        rows += [
            _of("QueueService/GetQueue", queue),
            _list(f"{WORDS[queue]}, none of that name", filter={"queue": queue, "name": "none"}),
            _list(f"{WORDS[queue]}, a page", filter={"queue": queue}, includePayloads=True),
            Call("JobAdminService/GetJob", WORDS[queue], _last_of(queue)),
            Call("JobAdminService/ExplainJob", WORDS[queue], _last_of(queue)),
            Call("FlowService/GetFlow", WORDS[queue], _last_of(queue)),
            Call("JobAdminService/GetJobLogs", WORDS[queue], _last_of(queue)),
            Call("JobService/Wait", WORDS[queue], _wait_for(queue)),
        ]
    for about, wanted in (
        ("all, by tag", {"tags": ["none"]}),
        ("all, by header", {"headers": {"none": "none"}}),
        ("all, by error", {"errorContains": "none"}),
        ("all, by group", {"group": "none"}),
        ("all, by time", {"pushedAfter": LATE}),
    ):
        rows.append(_list(about, filter=wanted))
    for queue in (DEAD, EXPIRED):
        list_dead = "DeadLetterService/ListDeadJobs"
        nothing = {"queue": queue, "errorContains": "none"}
        rows += [
            _of("DeadLetterService/GetDeadLetterStats", queue),
            _call(list_dead, f"{WORDS[queue]}, no such error", filter=nothing),
            _call(list_dead, f"{WORDS[queue]}, a page", filter={"queue": queue}, pageSize=PAGE),
        ]
    return rows


def _list(what: str, **fields: Any) -> Call:
    return _call("JobAdminService/ListJobs", what, pageSize=PAGE, **fields)


def _last_of(queue: str) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"id": world.last(queue)}


def _some_of(world: World, queue: str) -> list[str]:
    """Returns ids of some jobs; the others are for later calls."""
    return world.some(queue, min(IDS, world.jobs // 10))


def _wait_for(queue: str) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"ids": _some_of(world, queue), "timeout": "1s"}


def _settings() -> list[Call]:
    """Settings, pauses and limits of queues, groups, limiters and schedules, and their undo."""
    rows: list[Call] = []
    for queue in (READY, OWN, GROUPED, BATCHED):
        rows += [
            _update(queue, {"concurrency": 5}),
            # Of groups of more than 20,000 jobs this is refused.
            *(_update(queue, {"fair": fair}) for fair in (True, False) if queue != GROUPED),
            _of("QueueService/PauseQueue", queue),
            _of("QueueService/LimitQueue", queue, until=LATE),
            _undo("QueueService/LimitQueue", WORDS[queue]),
            _undo("QueueService/PauseQueue", WORDS[queue]),
            _call("QueueService/PauseQueue", f"{WORDS[queue]}, again", queue=queue),
            _of("QueueService/ResumeQueue", queue),
        ]
    group = {"queue": GROUPED, "group": GROUP}
    about = WORDS[GROUPED]
    limiter = {"limiter": LIMITER}
    rows += [
        _call("QueueService/UpdateGroup", about, **group, settings={"concurrency": 2},
              updateMask="concurrency"),
        _call("QueueService/PauseGroup", about, **group),
        _call("QueueService/LimitGroup", about, **group, until=LATE),
        _call("QueueService/ResumeGroup", about, **group),
        _call("LimiterService/UpsertLimiter", "all", **limiter, concurrency=5),
        _call("LimiterService/EmptyLimiter", "all", **limiter, until=LATE),
        _call("LimiterService/GetLimiter", "all", **limiter),
        _call("LimiterService/ListLimiters", "all", pageSize=PAGE),
        _call("LimiterService/DeleteLimiter", "all", **limiter),
    ]  # fmt: skip
    return rows + _schedules()


def _update(queue: str, settings: dict[str, Any]) -> Call:
    ((name, value),) = settings.items()
    what = f"{WORDS[queue]}, {name} {value}"
    return _call("QueueService/UpdateQueue", what, queue=queue, settings=settings, updateMask=name)


def _schedules() -> list[Call]:
    """A schedule whose jobs go where a million wait."""
    name = {"schedule": SCHEDULE}
    settings = {"queue": READY, "cron": "0 3 * * *", "overlap": 3, "job": {"text": "t"}}
    service = "ScheduleService"
    return [
        _call(f"{service}/CreateSchedule", WORDS[READY], **name, settings=settings),
        _call(f"{service}/GetSchedule", WORDS[READY], **name),
        _call(f"{service}/ListSchedules", WORDS[READY], pageSize=PAGE, queue=READY),
        _call(f"{service}/PreviewSchedule", WORDS[READY], **name, count=100),
        _call(f"{service}/TriggerSchedule", WORDS[READY], **name),
        _call(f"{service}/PauseSchedule", WORDS[READY], **name),
        _call(f"{service}/ResumeSchedule", WORDS[READY], **name),
        _call(f"{service}/UpdateSchedule", WORDS[READY], **name, settings={"every": "3600s"},
              updateMask="every"),
        _call(f"{service}/DeleteSchedule", WORDS[READY], **name),
    ]  # fmt: skip


def _single_jobs() -> list[Call]:
    """Changes of one job, or of ten thousand by their ids, among a million."""
    rows = [
        Call(
            "JobAdminService/UpdateJob",
            WORDS[queue],
            lambda world, queue=queue: {  # type: ignore[misc]
                "id": world.last(queue), "payload": "YQ==", "updateMask": "payload",
            },
        )
        for queue in (READY, OWN, LATER, GROUPED, BLOCKED)
    ]  # fmt: skip
    rows.append(
        _call("JobAdminService/ForgetKey", WORDS[READY], jobKey={"queue": PARENTS, "key": KEY})
    )
    for verb, queue in (
        ("Promote", LATER), ("Cancel", READY), ("Cancel", OWN), ("Cancel", GROUPED),
        ("Cancel", BLOCKED), ("Retry", DONE), ("Retry", DEAD), ("Delete", EXPIRED),
    ):  # fmt: skip
        rows.append(
            Call(
                f"JobAdminService/{verb}Jobs",
                f"{WORDS[queue]}, by {IDS:,} ids",
                lambda world, queue=queue: {  # type: ignore[misc]
                    "jobs": {"ids": _some_of(world, queue)}
                },
            )
        )
    return rows


def _dry_runs() -> list[Call]:
    rows = [
        _call(f"JobAdminService/{verb}Jobs", "all, dry run", jobs=EVERYTHING, dryRun=True)
        for verb in ("Promote", "Cancel", "Retry", "Delete")
    ]
    return [
        *rows,
        _call("DeadLetterService/PurgeDeadJobs", "all, dry run", **EVERYTHING, dryRun=True),
        _call("QueueService/DrainQueue", f"{WORDS[OWN]}, dry run", queue=OWN, dryRun=True),
        _call("QueueService/CleanQueue", f"{WORDS[DONE]}, dry run", queue=DONE,
              states=LEFT_STATES, olderThan="0s", dryRun=True),
        _call("QueueService/DeleteQueue", f"{WORDS[DEAD]}, dry run", queue=DEAD,
              confirmQueue=DEAD, dryRun=True),
        Call("BatchService/CancelBatch", f"{WORDS[BATCHED]}, dry run",
             lambda world: {"id": str(world.batch_id), "dryRun": True}),
    ]  # fmt: skip


def _changes() -> list[Call]:
    """Changes of a million jobs each: there, back, and away."""
    cancel = "JobAdminService/CancelJobs"
    batch = _batch_id
    return [
        _bulk("Promote", LATER),
        *(_bulk("Cancel", queue) for queue in (READY, OWN, GROUPED, BLOCKED)),
        *(_undo(cancel, WORDS[queue]) for queue in (READY, OWN)),
        *(_bulk("Retry", queue) for queue in (DEAD, DONE, GROUPED, BLOCKED)),
        _call("BatchService/CreateBatch", "a second one", name=OTHER),
        Call("BatchService/CloseBatch", WORDS[BATCHED], batch),
        Call("BatchService/CancelBatch", WORDS[BATCHED], batch),
        _bulk("Delete", LATER),
        _bulk("Delete", BATCHED),
        _call("QueueService/DrainQueue", WORDS[DONE], queue=DONE),
        _call("JobAdminService/CancelJobs", f"{WORDS[GROUPED]}, again",
              jobs={"filter": {"queue": GROUPED}}),
        _call("QueueService/CleanQueue", WORDS[GROUPED], queue=GROUPED, states=LEFT_STATES,
              olderThan="0s"),
        _call("DeadLetterService/PurgeDeadJobs", WORDS[EXPIRED], filter={"queue": EXPIRED}),
        *(_delete(queue) for queue in (READY, OWN, BLOCKED, DEAD)),
        # All of the above are among them.
        _call("AdminService/ListOperations", "all", pageSize=PAGE),
    ]  # fmt: skip


def _batch_id(world: World) -> dict[str, Any]:
    return {"id": str(world.batch_id)}


def _delete(queue: str) -> Call:
    return _call(
        "QueueService/DeleteQueue", WORDS[queue], queue=queue, confirmQueue=queue, force=True
    )


CALLS: tuple[Call, ...] = (*_looks(), *_settings(), *_single_jobs(), *_dry_runs(), *_changes())
