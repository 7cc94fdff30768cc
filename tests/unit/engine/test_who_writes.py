"""Only `apply` changes what is kept of jobs, lots and queues; verbs read, and emit facts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from jobline_server.engine import decide, shard
from jobline_server.engine.apply import apply
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.schedule import Schedule
from jobline_server.engine.shard_messages import SentMessage
from jobline_server.engine.unique import Throttle
from tests.unit.engine.test_model import EngineBesideModel

# The cursor passes holes when somebody looks at a lane's head, and holes go with that: no fact.
SWEPT = {"cursor", "holes"}
KEPT = {
    Job: {*Job.__slots__[: Job.__slots__.index("holder")]},
    Lot: {*Lot.__slots__[: Lot.__slots__.index("state")]} - SWEPT,
    Queue: {*Queue.__slots__[: Queue.__slots__.index("blocks")]},
    Throttle: {"job_id", "expires_ms"},
    SentMessage: {"key", "to_shard", "number", "message"},
    Schedule: {*Schedule.__slots__} - {"armed_ms"},
}
# What a verb makes for itself, and changes until it is done.
OWN = {
    "Blocking", "Choice", "Claims", "_Batch", "HeldKey", "Parents", "_Part", "Leased", "LeasedJob",
}  # fmt: skip
# Bookkeeping that is no fact, behind one object each.
DOORS = {"clocks", "delayed", "emit", "expiring", "note_use", "forget_keys"}
CHANGES = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert",
    "pop", "popitem", "popleft", "put", "put_back", "remove", "send", "setdefault", "settle",
    "take", "update", "use_key",
}  # fmt: skip


class _Guard:
    """Refuses writes to what is kept while `apply` is not at work."""

    def __init__(self) -> None:
        self.depth = 0
        self.writes = 0

    def apply(self, *fact: Any) -> None:
        self.depth += 1
        try:
            apply(*fact)
        finally:
            self.depth -= 1

    def at_start(self, restart: Callable[..., None]) -> Callable[..., None]:
        """A start of the server, which sets the ends of attempts, is no verb."""

        def start(*arguments: Any) -> None:
            self.depth += 1
            try:
                restart(*arguments)
            finally:
                self.depth -= 1

        return start

    def setter(self, kept: set[str]) -> Callable[[Any, str, Any], None]:
        def write(thing: Any, name: str, value: Any) -> None:
            if name in kept:
                self.writes += 1
                assert self.depth, f"{type(thing).__name__}.{name} is written outside apply"
            object.__setattr__(thing, name, value)

        return write


def test_nothing_but_apply_writes_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random histories of all verbs, timers and restarts, with every such write refused."""
    guard = _Guard()
    monkeypatch.setattr(shard, "apply", guard.apply)
    restart = guard.at_start(shard.Shard.restart_leases)
    monkeypatch.setattr(shard.Shard, "restart_leases", restart)
    for kind, kept in KEPT.items():
        monkeypatch.setattr(kind, "__setattr__", guard.setter(kept), raising=False)
    run_state_machine_as_test(
        EngineBesideModel,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        ),
    )
    assert guard.writes > 1_000


def verbs() -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of `decide`, with the names of their files."""
    for path in sorted(Path(str(decide.__file__)).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path.name, node


def root_of(node: ast.expr) -> tuple[str, list[str]]:
    """`shard.clocks.holders[x]` as ("shard", ["clocks", "holders"])."""
    names: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return "", names
    return node.id, names


def own_names(function: ast.FunctionDef) -> set[str]:
    """Names of values that belong to the verb: its own objects, and plain lists and dicts."""
    found = {"self"}
    for argument in (*function.args.args, *function.args.kwonlyargs):
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if kind in OWN or kind.startswith(("list[", "dict[")):
            found.add(argument.arg)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if ast.unparse(node.value.func) in OWN:
                found.add(ast.unparse(node.targets[0]))
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in OWN:
            found.add(ast.unparse(node.target))
    return found


def writes_of(function: ast.FunctionDef) -> Iterator[str]:
    """What a verb changes that is not its own."""
    own = own_names(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if root_of(node)[0] not in own:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            root, names = root_of(node.func)
            if root == "shard" and names[0] not in DOORS and names[-1] in CHANGES:
                yield ast.unparse(node.func)


def test_no_verb_writes_by_itself() -> None:
    """No assignment to an attribute of the shard or of what is in it, and no change of its tables:
    a verb emits facts, and moves clocks.
    """
    found = [
        f"{name} {function.name}: {write}"
        for name, function in verbs()
        for write in writes_of(function)
    ]
    assert found == []


def test_a_verb_that_writes_is_found() -> None:
    """The check itself: writes through the shard, and through what was taken from it."""
    source = """
def decide_wrong(shard, queue: Queue, chosen: Choice):
    shard.next_order = 1
    queue.counts.ready += 1
    chosen.jobs_room = 2
    shard.jobs.pop(3)
    shard.clocks.arm(queue)
"""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert sorted(writes_of(function)) == [
        "queue.counts.ready",
        "shard.jobs.pop",
        "shard.next_order",
    ]
