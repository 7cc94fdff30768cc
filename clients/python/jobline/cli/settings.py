"""Settings of a queue as words: `lease=30s max_attempts=5 backoff.base=2s max_waiting=`.

A word is `key=value`; an empty value takes the setting back to its default. Pure: words in,
keywords of `client.queues.update` out, and settings as rows to show.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from functools import partial
from typing import Any

from jobline._ageing import Ageing
from jobline._dead_letters import DeadLetters
from jobline._dependencies import DependencyPolicy
from jobline._enums import AckLevel, named
from jobline._group_values import GroupSettings, GroupSettingsHow, OnDeadHead
from jobline._objective import Objective
from jobline._option_enums import BackoffKind, DeliveryMode
from jobline._option_parts import Backoff, Retention, overridden
from jobline._queue_values import QueueSettings, SettingsHow
from jobline._rate_limit import RateLimit
from jobline._times import parse_span
from jobline._unique_mode import UniqueMode
from jobline.cli.durations import show_span
from jobline.cli.exit_codes import UsageError
from jobline.cli.setting_values import (
    parse_ageing,
    parse_objective,
    parse_rate,
    share,
    show_ageing,
    show_objective,
    show_rate,
    whole,
)
from jobline.errors import InvalidArgument


def _boolean(text: str) -> bool:
    known = {"true": True, "yes": True, "false": False, "no": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is not true or false")
    return known[text.lower()]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _spans(text: str) -> tuple[timedelta, ...]:
    return tuple(timedelta(seconds=parse_span(span)) for span in text.split(","))


SETTINGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "lease": (parse_span, "how long a worker may stay silent"),
    "max_attempts": (whole, "failures before a job is dead; 0: no limit"),
    "backoff.kind": (partial(named, BackoffKind), "fixed or exponential"),
    "backoff.base": (parse_span, "the first pause"),
    "backoff.max_delay": (parse_span, "the longest pause"),
    "backoff.jitter": (share, "share by which a pause varies, 0 … 1"),
    "backoff.delays": (_spans, "the pauses one by one instead: 1s,10s,5m"),
    "max_stalls": (whole, "lost leases that are forgiven"),
    "retention.remove_on_complete": (_boolean, "forget completed jobs at once"),
    "retention.remove_on_fail": (_boolean, "forget dead jobs at once"),
    "retention.age": (parse_span, "how long ended jobs stay"),
    "retention.count": (whole, "how many ended jobs stay"),
    "retention.delete_after": (parse_span, "how long stale jobs stay before they are deleted"),
    "min_ack_level": (
        partial(named, AckLevel),
        "memory, buffered or fsynced: the least a push gets",
    ),
    "max_waiting": (whole, "how many jobs may wait"),
    "max_waiting_bytes": (whole, "how many payload bytes it may hold"),
    "rate": (parse_rate, "how many jobs may start: 100/1m, or 100/1m/20 for up to 20 at once"),
    "concurrency": (whole, "how many jobs may be active at once"),
    "delivery": (
        partial(named, DeliveryMode),
        "at_least_once, or once: never again after a hand-out",
    ),
    "disconnect_grace": (parse_span, "how long jobs wait for a worker whose stream broke"),
    "ttl": (parse_span, "how long new jobs may wait; 0: for ever"),
    "timeout": (parse_span, "how long one attempt may take in all; 0: as long as it takes"),
    "ageing": (
        parse_ageing,
        "how waiting jobs rise in priority: 10m, or 10m/5/50 for 5 each time, 50 in all",
    ),
    "objective": (parse_objective, "how soon jobs shall start: 99%/30s; says how many workers"),
    "expired_to_dead": (_boolean, "jobs whose ttl ends are dead letters"),
    "group.concurrency": (whole, "how many jobs of a group may run at a time"),
    "group.max_waiting": (whole, "how many jobs of a group may wait"),
    "group.on_dead_head": (partial(named, OnDeadHead), "continue or hold: at a dead job"),
    "group.rate": (parse_rate, "how many jobs of a group may start: 100/1m"),
    "unique_mode": (partial(named, UniqueMode), "what a push does while its unique key is held"),
    "unique_ttl": (parse_span, "how long a unique key is held"),
    "unique_max_wait": (parse_span, "how long debounce may delay a job"),
    "on_dependency_failure": (
        partial(named, DependencyPolicy),
        "fail, cancel, ignore, wait or continue: if a job that it depends on does not complete",
    ),
    "block_timeout": (parse_span, "how long a job may wait for others"),
    "group.weight": (whole, "in a fair queue, the share of workers that a group gets"),
    "fair": (_boolean, "groups are tenants, served by weight and by worker time"),
    "non_retryable_error_types": (_names, "these errors go straight to the dead letters: A,B"),
    "check_payloads": (_boolean, "refuse payloads that fit no announced schema"),
    "dead_letters.expire_after": (parse_span, "how long dead jobs stay"),
    "dead_letters.keep_forever": (_boolean, "dead jobs do not expire"),
    "dead_letters.max_bytes": (whole, "bytes of dead jobs that are kept"),
    "dead_letters.auto_retry": (_boolean, "put dead jobs back by themselves"),
    "dead_letters.auto_retry_first_delay": (parse_span, "how long after the first death"),
    "dead_letters.auto_retry_max": (whole, "how often a dead job is put back by itself"),
}

HELP = "An empty value takes the setting back to its default.\n" + "\n".join(
    f"{key}: {what}" for key, (_, what) in SETTINGS.items()
)


_OF_GROUPS = "group."
GROUP_SETTINGS = {
    key.removeprefix(_OF_GROUPS): what
    for key, (_, what) in SETTINGS.items()
    if key.startswith(_OF_GROUPS)
}
GROUP_HELP = "An empty value takes the setting back to that of the queue.\n" + "\n".join(
    f"{key}: {what}" for key, what in GROUP_SETTINGS.items()
)

_PARTS: dict[str, Any] = {
    "backoff": Backoff(),
    "retention": Retention(),
    "dead_letters": DeadLetters(),
    "group": GroupSettings(),
}


def changes(settings: QueueSettings, words: Iterable[str]) -> SettingsHow:
    """What the words change of some settings, as keywords of `client.queues.update`. Raises
    Mistake.
    """
    changed: Any = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or key not in SETTINGS:
            raise _no_setting(word, SETTINGS)
        name, dot, field = key.partition(".")
        value = _parsed(key, text) if text else _DEFAULTS.get(key)
        if dot:
            part = changed.get(name) or getattr(settings, name) or _PARTS[name]
            change = {field: value}
            value = overridden(part, type(part)(**change)) if text else replace(part, **change)
            value = None if value == _PARTS[name] else value
        changed[name] = value
    keywords: SettingsHow = changed
    return keywords


def group_changes(words: Iterable[str]) -> GroupSettingsHow:
    """What the words change of the settings of a group, as keywords of
    `client.queues.groups.update`.
    """
    changed: Any = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or key not in GROUP_SETTINGS:
            raise _no_setting(word, GROUP_SETTINGS)
        changed[key] = _parsed(_OF_GROUPS + key, text) if text else None
    keywords: GroupSettingsHow = changed
    return keywords


def part_of(name: str, words: Iterable[str]) -> dict[str, Any]:
    """What words say of the fields of `backoff` or `retention`, as for a queue."""
    known = [key.removeprefix(f"{name}.") for key in SETTINGS if key.startswith(f"{name}.")]
    said = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not text or key not in known:
            raise _no_setting(word, known)
        said[key] = _parsed(f"{name}.{key}", text)
    return said


def _no_setting(word: str, known: Iterable[str]) -> UsageError:
    """Returns the error of a word that sets nothing, with what may have been meant."""
    key, equals, text = word.partition("=")
    names = list(known)
    if key in names:
        return UsageError(f"{word!r} is not KEY=VALUE: write {key}=…")
    # `base` may have meant `backoff.base`.
    close = [each for each in names if key and key in each.split(".")]
    close = close or difflib.get_close_matches(key, names, n=1)
    if close:
        meant = f"{close[0]}={text}" if equals else f"{close[0]}=…"
        return UsageError(f"{key!r} is no setting: did you mean {meant}?")
    return UsageError(f"{word!r} is not KEY=VALUE of a setting: {', '.join(names)}")


def group_rows(settings: GroupSettings) -> list[tuple[str, str]]:
    """The settings that a group has of its own, as they would be typed."""
    return [(key, shown) for key in GROUP_SETTINGS if (shown := _shown(getattr(settings, key)))]


def rows(settings: QueueSettings) -> list[tuple[str, str]]:
    """The settings that a queue has of its own, as they would be typed."""
    return [(key, shown) for key in SETTINGS if (shown := _shown(_said(settings, key)))]


_DEFAULTS: dict[str, Any] = {
    "non_retryable_error_types": (),
    "check_payloads": False,
    "fair": False,
    "dead_letters.keep_forever": False,
    "dead_letters.auto_retry": False,
}


def _parsed(key: str, text: str) -> Any:
    parse, _ = SETTINGS[key]
    try:
        return parse(text)
    except (ValueError, InvalidArgument) as error:
        raise UsageError(f"{key}: {error}") from None


def _said(settings: QueueSettings, key: str) -> Any:
    """The value of a setting; None where the queue has none of its own."""
    name, dot, field = key.partition(".")
    value = getattr(settings, name)
    said = getattr(value, field) if dot and value is not None else value
    return None if said == _DEFAULTS.get(key) else said


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, RateLimit):
        return show_rate(value)
    if isinstance(value, Ageing):
        return show_ageing(value)
    if isinstance(value, Objective):
        return show_objective(value)
    if isinstance(value, timedelta):
        return show_span(value.total_seconds())
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
