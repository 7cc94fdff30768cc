"""Good requests to ScheduleService, which the fuzz test changes."""

from __future__ import annotations

from typing import Any

_SETTINGS = {"queue": "fuzz", "cron": "*/5 2 * * 1-5", "timeZone": "Europe/Berlin", "overlap": 3}
_JOB = {"text": "t", "delay": "1s", "options": {"name": "n", "tags": ["a"]}}
VALID_SCHEDULES: dict[str, dict[str, Any]] = {
    f"ScheduleService/{name}Schedule": {"schedule": "fuzz"}
    for name in ("Get", "Delete", "Pause", "Resume", "Trigger")
} | {
    "ScheduleService/CreateSchedule": {
        "schedule": "fuzz",
        "settings": _SETTINGS | {"job": _JOB, "jitter": "3s", "limit": "5"},
        "upsert": True,
    },
    "ScheduleService/UpdateSchedule": {
        "schedule": "fuzz",
        "settings": {"every": "5s", "missed": 2},
        "updateMask": "every,missed",
    },
    "ScheduleService/PreviewSchedule": {"settings": _SETTINGS, "count": 3},
    "ScheduleService/ListSchedules": {"pageSize": 5, "queue": "fuzz"},
}
