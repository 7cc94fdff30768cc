"""The format of the vectors: reading them, replacing their variables, and the one way to match.

docs/clients.md describes it for those who write a runner in another language.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
Json = Any
Variables = dict[str, str]
NAME = re.compile(r"\$([a-z][a-z0-9_]*)")


class Absent:
    """What is not there: no value of JSON. `null` expects it."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


class Mismatch(AssertionError):
    """What a step returned is not what its vector expects."""


def load(pattern: str = "vectors/*.yaml") -> list[dict[str, Any]]:
    """The vectors of all files, in order."""
    found: list[dict[str, Any]] = []
    for path in sorted(HERE.glob(pattern)):
        found.extend(yaml.safe_load(path.read_text(encoding="utf-8")))
    return found


def filled(value: Json, variables: Variables) -> Json:
    """A request: its variables replaced, and its short forms written out."""
    if isinstance(value, str):
        return NAME.sub(lambda found: variables[found[1]], value)
    if isinstance(value, list):
        return [filled(item, variables) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"times", "of"}:
        return [filled(value["of"], variables)] * value["times"]
    if set(value) == {"as_text"}:
        return base64.b64encode(filled(value["as_text"], variables).encode()).decode()
    if set(value) == {"as_json"}:
        text = json.dumps(filled(value["as_json"], variables))
        return base64.b64encode(text.encode()).decode()
    return {filled(name, variables): filled(item, variables) for name, item in value.items()}


def match(wanted: Json, got: Json, variables: Variables, path: str = "reply") -> None:
    """Raises Mismatch unless `got` is as wanted; a variable that has no value yet takes it."""
    if wanted is None:
        _check(got is ABSENT, path, "nothing", got)
    elif isinstance(wanted, dict):
        _match_map(wanted, got, variables, path)
    elif isinstance(wanted, list):
        items = [] if got is ABSENT else got
        _check(isinstance(items, list) and len(items) == len(wanted), path, wanted, got)
        for index, item in enumerate(wanted):
            match(item, items[index], variables, f"{path}[{index}]")
    elif isinstance(wanted, str):
        name = NAME.fullmatch(wanted)
        if name and name[1] not in variables:
            _check(isinstance(got, str | int) and got != "", path, f"a value for {wanted}", got)
            variables[name[1]] = str(got)
        else:
            text = filled(wanted, variables)
            _check(isinstance(got, str | int) and str(got) == text, path, text, got)
    else:
        _check(_same_scalar(wanted, got), path, wanted, got)


def _match_map(wanted: dict[str, Json], got: Json, variables: Variables, path: str) -> None:
    if set(wanted) == {"as_text"}:
        _check(isinstance(got, str), path, wanted, got)
        match(wanted["as_text"], base64.b64decode(got).decode(), variables, path)
    elif set(wanted) == {"as_json"}:
        _check(isinstance(got, str), path, wanted, got)
        match(wanted["as_json"], json.loads(base64.b64decode(got)), variables, path)
    elif set(wanted) == {"has"}:
        items = [] if got is ABSENT else got
        for item in wanted["has"]:
            _check(any(matches(item, one, variables) for one in items), path, item, items)
    else:
        _check(isinstance(got, dict) or got is ABSENT, path, wanted, got)
        for name, item in wanted.items():
            inner = ABSENT if got is ABSENT else got.get(filled(name, variables), ABSENT)
            match(item, inner, variables, f"{path}.{name}")


def matches(wanted: Json, got: Json, variables: Variables) -> bool:
    """Whether `got` is as wanted; variables take their values if it is."""
    tried = dict(variables)
    try:
        match(wanted, got, tried)
    except Mismatch:
        return False
    variables.update(tried)
    return True


def _same_scalar(wanted: float | bool, got: Json) -> bool:
    """Numbers are equal as numbers: protobuf's JSON writes those of 64 bits as texts."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    try:
        return got is not ABSENT and float(got) == wanted
    except (TypeError, ValueError):
        return False


def _check(holds: bool, path: str, wanted: Json, got: Json) -> None:
    if not holds:
        shown = repr(got) if got is ABSENT else json.dumps(got, default=str)
        raise Mismatch(f"{path}: expected {wanted}, got {shown}")
