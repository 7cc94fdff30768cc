"""What holds of schedules between any two commands. `invariants` has the list of all checks."""

from __future__ import annotations

from jobline_server.engine.schedule import Schedule
from jobline_server.engine.shard import Shard


def schedules_add_up(shard: Shard) -> str:
    """G24: each schedule is found by its name, queue and last job, and is looked at when it is due;
    it knows whether its last job has ended.
    """
    table = shard.schedules
    of_queues = {one.name for queue in table.by_queue for one in table.of_queue(queue)}
    if of_queues != table.by_name.keys() or not table.by_queue.keys() <= shard.queues.keys():
        return f"{of_queues} in queues {[*table.by_queue]}, {[*table.by_name]} in all"
    size = sum(len(one.settings.job.payload) for one in table.by_name.values())
    if size != table.payload_bytes:
        return f"schedules count {table.payload_bytes} payload bytes of {size}"
    for job_id, schedule in table.by_job.items():
        if schedule.last_job_id != job_id or table.find(schedule.name) is not schedule:
            return f"job {job_id} is the last one of a schedule that has another"
    for schedule in table.by_name.values():
        if problem := _problem(shard, schedule):
            return f"schedule {schedule.name} {problem}"
    return ""


def _problem(shard: Shard, schedule: Schedule) -> str:
    job_id = schedule.last_job_id
    if job_id and shard.schedules.by_job.get(job_id) is not schedule:
        return f"is not found by its last job {job_id}"
    is_live = bool(job_id) and shard.state_of(job_id) is not None
    if is_live != schedule.is_running():
        return f"is wrong about its last job {job_id}: is it live? {is_live}"
    start_ms = schedule.next_start_ms()
    if start_ms is not None and (schedule.armed_ms is None or schedule.armed_ms > start_ms):
        return f"is looked at by {schedule.armed_ms}, after its next run {start_ms}"
    return ""
