"""The options of the data source. Spark gives them as text, with keys in any case.

A mistake is refused where the frame is made, in one sentence that says what is understood.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from jobline import JobState
from jobline.v1.event_pb2 import EventKind
from jobline_pipeline.problems import PipelineError

ADDRESS = "localhost:7070"
# How many pushes of a task fly at once: enough to keep a server busy while the next lot is made.
CALLS = 4
# Rows of a push: the server's limits are 10,000 plain payloads, and 1,000 jobs that differ.
LOT_ROWS = 10_000
# How long a task waits for a full queue or a server that is away.
PATIENCE_SECONDS = 600.0

# Spark's own, which reach the source as well.
_SPARK = {"path", "checkpointlocation", "queryname", "mode"}
_COMMON = {"address", "timeout"}
_READ = {"queues", "states", "filter", "pagesize"}
_STREAM = {"queues", "events", "startingposition", "maxeventspertrigger", "failondataloss"}
_CONSTANTS = {
    "name": "name",
    "priority": "priority",
    "group": "group",
    "maxattempts": "max_attempts",
    "lease": "lease",
    "ttl": "ttl",
    "attempttimeout": "attempt_timeout",
    "tags": "tags",
    "contenttype": "content_type",
}
# Option: what a job has from the column that the option names.
_COLUMNS = {
    "queuecolumn": "queue",
    "payloadcolumn": "payload",
    "keycolumn": "job_key",
    "uniquekeycolumn": "unique_key",
    "groupcolumn": "group",
    "namecolumn": "name",
    "prioritycolumn": "priority",
    "headerscolumn": "headers",
    "tagscolumn": "tags",
    "delaycolumn": "delay",
    "runatcolumn": "run_at",
    "maxattemptscolumn": "max_attempts",
    "contenttypecolumn": "content_type",
}
_WRITE = {"queue", "key", "runid", "atomic", "delay", "acklevel", "uniquemode", "calls", "patience"}
_INTEGERS = {"priority", "max_attempts"}


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is. `timeout`: of a call, in seconds."""

    address: str
    timeout: float
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Which jobs to read; no queues: all that there are."""

    queues: tuple[str, ...]
    states: tuple[JobState, ...]
    words: str
    page_size: int


@dataclass(frozen=True, slots=True)
class EventsWanted:
    """Which events to stream; none named: all. `start`: "latest", or a position as Spark shows it.
    `limit`: about how many events a micro-batch has; 0: all that there are.
    """

    queues: tuple[str, ...]
    kinds: tuple[EventKind.ValueType, ...]
    start: str
    limit: int
    fails_on_loss: bool


@dataclass(frozen=True, slots=True)
class Writing:
    """How rows become jobs. `columns`: by what a job has of its own, the column with it."""

    queue: str
    columns: Mapping[str, str]
    constants: Mapping[str, object]
    keys_by_position: bool
    run_id: str
    atomic: bool
    calls: int
    patience: float


def server_of(options: Mapping[str, str]) -> Server:
    """Returns where the server is: the option `address`, else JOBLINE_SERVER, else localhost."""
    given = _lower(options)
    address = given.get("address") or os.environ.get("JOBLINE_SERVER") or ADDRESS
    metadata = {
        key.removeprefix("metadata."): value
        for key, value in given.items()
        if key.startswith("metadata.")
    }
    return Server(address, _number(given, "timeout", 30.0), metadata)


def jobs_wanted(options: Mapping[str, str]) -> JobsWanted:
    """Returns which jobs to read. Raises PipelineError."""
    given = _checked(options, _READ, "read")
    states = _words(given.get("states", ""))
    known = {state.name: state for state in JobState if state}
    for state in states:
        if state.upper() not in known:
            names = ", ".join(known).lower()
            raise PipelineError(f"states: {state} is none; there are {names}")
    return JobsWanted(
        queues=_words(given.get("queues", "")),
        states=tuple(known[state.upper()] for state in states),
        words=given.get("filter", ""),
        page_size=_whole(given, "pagesize", 10_000, 1, 10_000),
    )


def events_wanted(options: Mapping[str, str]) -> EventsWanted:
    """Returns which events to stream. Raises PipelineError."""
    given = _checked(options, _STREAM, "readStream")
    kinds = []
    for word in _words(given.get("events", "all")):
        if word.lower() == "all":
            continue
        try:
            kinds.append(EventKind.Value(f"EVENT_KIND_{word.upper()}"))
        except ValueError:
            message = f"events: {word} is none; docs/api.md of Jobline lists them"
            raise PipelineError(message) from None
    return EventsWanted(
        queues=_words(given.get("queues", "")),
        kinds=tuple(kinds),
        start=given.get("startingposition", "latest"),
        limit=_whole(given, "maxeventspertrigger", 0, 0, 1 << 40),
        fails_on_loss=_flag(given, "failondataloss", default=True),
    )


def are_events(options: Mapping[str, str]) -> bool:
    """Returns whether the options are those of a stream of events."""
    return "events" in _lower(options)


def writing(options: Mapping[str, str], *, method: str = "write") -> Writing:
    """Returns how rows become jobs. Raises PipelineError."""
    given = _checked(options, _WRITE | set(_CONSTANTS) | set(_COLUMNS), method)
    columns = {job: given[option] for option, job in _COLUMNS.items() if given.get(option)}
    if bool(given.get("queue")) == ("queue" in columns):
        raise PipelineError("a write needs the option queue, or queueColumn, and not both")
    if given.get("key", "position") != "position":
        raise PipelineError('key: can only be "position"; keyColumn names a column of keys')
    found = Writing(
        queue=given.get("queue", ""),
        columns=columns,
        constants=_constants(given),
        keys_by_position="key" in given,
        run_id=given.get("runid", ""),
        atomic=_flag(given, "atomic", default=False),
        calls=_whole(given, "calls", CALLS, 1, 64),
        patience=_number(given, "patience", PATIENCE_SECONDS),
    )
    _check_together(found, given)
    return found


def _check_together(found: Writing, given: Mapping[str, str]) -> None:
    if found.keys_by_position and "job_key" in found.columns:
        raise PipelineError("give keyColumn or key=position, not both")
    if not found.atomic:
        return
    if found.keys_by_position or {"job_key", "unique_key"} & set(found.columns):
        raise PipelineError(
            "atomic does not go together with keys: a key stays known for 24 hours, so that the "
            "rows of a write that was dropped would be taken for duplicates; use runId instead"
        )
    if "delay" in given or {"delay", "run_at"} & set(found.columns):
        raise PipelineError("atomic does not go together with delays: its jobs are ready at commit")


def _constants(given: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for option, job in _CONSTANTS.items():
        if option not in given:
            continue
        if job in _INTEGERS:
            found[job] = _whole(given, option, 0, -(1 << 31), (1 << 31) - 1)
        else:
            found[job] = _words(given[option]) if job == "tags" else given[option]
    for option, job in (
        ("delay", "delay"),
        ("acklevel", "ack_level"),
        ("uniquemode", "unique_mode"),
    ):
        if option in given:
            found[job] = given[option]
    return found


def _checked(options: Mapping[str, str], own: set[str], method: str) -> dict[str, str]:
    given = _lower(options)
    for option in given:
        if option in own | _COMMON | _SPARK or option.startswith("metadata."):
            continue
        known = ", ".join(sorted(own | _COMMON))
        raise PipelineError(f"{option} is no option of {method} for jobline; there are {known}")
    return given


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").split() if word)


def _flag(given: Mapping[str, str], option: str, *, default: bool) -> bool:
    text = given.get(option, "").lower()
    if text not in {"", "true", "false"}:
        raise PipelineError(f"{option}: must be true or false, not {text}")
    return text == "true" if text else default


def _whole(given: Mapping[str, str], option: str, default: int, low: int, high: int) -> int:
    text = given.get(option)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise PipelineError(f"{option}: must be a whole number, not {text}") from None
    if not low <= value <= high:
        raise PipelineError(f"{option}: must be {low} … {high}, not {value}")
    return value


def _number(given: Mapping[str, str], option: str, default: float) -> float:
    text = given.get(option)
    try:
        value = default if text is None else float(text)
    except ValueError:
        raise PipelineError(f"{option}: must be a number of seconds, not {text}") from None
    if value <= 0:
        raise PipelineError(f"{option}: must be above 0 seconds")
    return value
