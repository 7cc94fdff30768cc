"""What holds of every benchmark: nothing is measured here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from benchmarks.figures import Figure
from benchmarks.million.calls import CALLS, EXEMPT
from benchmarks.million.worlds import KINDS, World
from tests.server.calling import all_rpcs, method_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PLACE = list(Figure.__dataclass_fields__).index("ratio")
# They are held against a limit: a share of a core, a step of the loop, microseconds of the engine.
WITHOUT_RATIO = {"idle.py", "operators.py", "engine.py", "engine_groups.py", "engine_sticky.py"}
FILES = [
    path
    for path in sorted(BENCHMARKS.glob("*.py"))
    if "Figure(" in path.read_text(encoding="utf-8") and path.name not in WITHOUT_RATIO
]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_each_figure_has_a_ratio_of_its_own_run(file):
    """Trial D11: an absolute figure follows the speed of the host, so it says little alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Figure":
            named = {keyword.arg for keyword in call.keywords}
            assert "ratio" in named or len(call.args) > PLACE, f"{file.name}:{call.lineno}"


def test_each_rpc_meets_a_million_jobs():
    """A new one needs a row; those of producers and workers are measured elsewhere."""
    called = {call.rpc for call in CALLS}
    assert called | EXEMPT == set(all_rpcs())
    assert not called & EXEMPT


def test_each_call_of_a_million_has_a_name_and_a_request():
    """And an undo comes after what it undoes."""
    server: Any = None
    world = World(server, None, 1_000, {kind: [(1, 1_000)] for kind in [*KINDS, "parents"]}, 1)
    for call in CALLS:
        assert call.key not in world.operations, call.key
        ParseDict(call.request(world), GetMessageClass(method_of(call.rpc).input_type)())
        world.operations[call.key] = "an operation"
