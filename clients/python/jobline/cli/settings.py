"""Settings of a queue as words: `lease=30s max_attempts=5 backoff.base=2s max_waiting=`.

A word is `key=value`; an empty value takes the setting back to its default. Pure: words in, message
and field mask out, and a message as rows to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from jobline.cli.exits import Mistake
from jobline.cli.spans import show_span
from jobline.enums import AckLevel, BackoffKind
from jobline.times import from_duration, parse_span, to_duration
from jobline.v1 import job_pb2
from jobline.v1.queue_pb2 import QueueSettings


def _span(text: str) -> Any:
    return to_duration(parse_span(text))


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _boolean(text: str) -> bool:
    known = {"true": True, "yes": True, "false": False, "no": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is not true or false")
    return known[text.lower()]


def _level(text: str) -> int:
    try:
        return AckLevel[text.upper()]
    except KeyError:
        raise ValueError(f"{text!r} is not memory, buffered or fsynced") from None


def _kind(text: str) -> int:
    try:
        return BackoffKind[text.upper()]
    except KeyError:
        raise ValueError(f"{text!r} is not fixed or exponential") from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


SETTINGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "lease": (_span, "how long a worker may stay silent"),
    "max_attempts": (_whole, "failures before a job is dead; 0: no limit"),
    "backoff.kind": (_kind, "fixed or exponential"),
    "backoff.base": (_span, "the first pause"),
    "backoff.max_delay": (_span, "the longest pause"),
    "backoff.jitter": (_share, "share by which a pause varies, 0 … 1"),
    "max_stalls": (_whole, "lost leases that are forgiven"),
    "retention.remove_on_complete": (_boolean, "forget completed jobs at once"),
    "retention.remove_on_fail": (_boolean, "forget dead jobs at once"),
    "retention.age": (_span, "how long ended jobs stay"),
    "retention.count": (_whole, "how many ended jobs stay"),
    "min_ack_level": (_level, "memory, buffered or fsynced: the least a push gets"),
    "max_waiting": (_whole, "how many jobs may wait"),
    "non_retryable_error_types": (_names, "these errors go straight to the dead letters: A,B"),
}

HELP = "An empty value takes the setting back to its default.\n" + "\n".join(
    f"{key}: {what}" for key, (_, what) in SETTINGS.items()
)


def change(settings: QueueSettings, words: Iterable[str]) -> list[str]:
    """Changes the message as the words say; returns the fields for the mask. Raises Mistake."""
    fields: dict[str, None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in SETTINGS:
            raise Mistake(f"{word!r} is not KEY=VALUE of a setting: {', '.join(SETTINGS)}")
        owner, name = _place(settings, key)
        owner.ClearField(name)
        if value:
            _set(owner, name, key, value)
        fields[key.partition(".")[0]] = None
    return list(fields)


def rows(settings: QueueSettings) -> list[tuple[str, str]]:
    """The settings that a queue has of its own, as they would be typed."""
    return [(key, shown) for key in SETTINGS if (shown := _shown(settings, key))]


def _place(settings: QueueSettings, key: str) -> tuple[Message, str]:
    first, dot, rest = key.partition(".")
    return (getattr(settings, first), rest) if dot else (settings, first)


def _set(owner: Message, name: str, key: str, text: str) -> None:
    parse, _ = SETTINGS[key]
    try:
        value = parse(text)
        if isinstance(value, Message):
            getattr(owner, name).CopyFrom(value)
        elif isinstance(value, list):
            getattr(owner, name).extend(value)
        else:
            setattr(owner, name, value)
    except ValueError as error:
        raise Mistake(f"{key}: {error}") from None


def _shown(settings: QueueSettings, key: str) -> str:
    owner, name = _place(settings, key)
    field = owner.DESCRIPTOR.fields_by_name[name]
    value = getattr(owner, name)
    if field.has_presence and not owner.HasField(name):
        return ""
    if field.message_type is not None:
        return show_span(from_duration(value).total_seconds())
    if key == "min_ack_level":
        return _enum_text(job_pb2.AckLevel.Name(value), "ACK_LEVEL_")
    if key == "backoff.kind":
        return _enum_text(job_pb2.BackoffKind.Name(value), "BACKOFF_KIND_")
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if key == "non_retryable_error_types" else str(value)


def _enum_text(name: str, prefix: str) -> str:
    bare = name.removeprefix(prefix).lower()
    return "" if bare == "unspecified" else bare
