"""Finds the jobs that were pushed, for assertions, and says what is there instead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from jobline import Client, Job, JobType
from jobline import _codec as codec
from jobline._blocking.connection import closing

# What an assertion shows of the jobs that are there.
SHOWN_JOBS = 20
SHOWN_CHARACTERS = 200

# Jobs that are asked for at a time.
PAGE_JOBS = 1_000


class _Any:
    """Stands for a payload that is not asked for."""

    def __repr__(self) -> str:
        return "<any>"


ANY_PAYLOAD: Any = _Any()

What = str | JobType[Any, Any] | None


def conditions_of(what: What, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the conditions that a name or a declared job stands for, with others."""
    if what is None:
        return dict(conditions)
    if isinstance(what, JobType):
        return {"queue": what.queue, "name": what.name, **conditions}
    return {"name": what, **conditions}


def find_pushed(
    client: Client,
    conditions: Mapping[str, Any],
    payload: Any,
    contained: Any,
    limit: int | None = None,
) -> list[Job]:
    """Returns the jobs that match, in the order of their pushes in each queue; with a `limit`, the
    first of them, and no more is read than that takes.
    """
    is_any = payload is ANY_PAYLOAD and contained is ANY_PAYLOAD
    page = PAGE_JOBS if limit is None or not is_any else min(limit, PAGE_JOBS)
    found = client.jobs.list(include_payloads=True, page_size=page, **conditions)
    with closing(found) as jobs:
        return list(islice((job for job in jobs if _matches(job, payload, contained)), limit))


def _matches(job: Job, payload: Any, contained: Any) -> bool:
    if payload is ANY_PAYLOAD and contained is ANY_PAYLOAD:
        return True
    value = plain_payload(job)
    is_equal = payload is ANY_PAYLOAD or value == plain(payload)
    return is_equal and (contained is ANY_PAYLOAD or contains(value, plain(contained)))


def plain_payload(job: Job) -> Any:
    """Returns a payload as the values of JSON, or as bytes if it is not JSON."""
    try:
        return json.loads(job.payload)
    except ValueError:
        return job.payload


def plain(value: Any) -> Any:
    """Returns a value as it is after a push: a dataclass as a dictionary."""
    return value if isinstance(value, bytes) else json.loads(codec.encode_json(value))


def contains(value: Any, part: Any) -> bool:
    """Returns whether a payload has a part: some of the keys of an object, at any depth, with these
    values; some items of a list; or, where the payload is a text or bytes, a piece of it.
    """
    if isinstance(part, str) and isinstance(value, str):
        return part in value
    if isinstance(part, bytes) and isinstance(value, bytes):
        return part in value
    return _has(value, part)


def _has(value: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(value, dict):
        return all(key in value and _has(value[key], wanted) for key, wanted in part.items())
    if isinstance(part, list) and isinstance(value, list):
        return all(any(_has(item, wanted) for item in value) for wanted in part)
    return bool(value == part)


def described(conditions: Mapping[str, Any], payload: Any, contained: Any) -> str:
    """Returns what was asked for, in words."""
    parts = [f"{name}={value!r}" for name, value in conditions.items()]
    if payload is not ANY_PAYLOAD:
        parts.append(f"payload={plain(payload)!r}")
    if contained is not ANY_PAYLOAD:
        parts.append(f"payload__contains={plain(contained)!r}")
    return ", ".join(parts) or "any"


def shown(jobs: Sequence[Job]) -> str:
    """Returns jobs as lines of a message."""
    lines = [_line(job) for job in jobs[:SHOWN_JOBS]]
    if len(jobs) > SHOWN_JOBS:
        lines.append("and more")
    return "\n".join(f"  {line}" for line in lines) or "  none"


def _line(job: Job) -> str:
    payload = _cut(repr(plain_payload(job)))
    name = f"{job.queue}/{job.options.name}" if job.options.name else job.queue
    failed = f" {_cut(f'{job.error.type}: {job.error.message!r}')}" if job.error else ""
    return f"{job.id} {name} {job.state.name} {payload}{failed}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
