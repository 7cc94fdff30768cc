"""What holds of every benchmark: nothing is measured here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from benchmarks import report
from benchmarks.__main__ import BENCHMARKS as EVERY
from benchmarks.__main__ import LONG, SHORTENED, choose, is_whole
from benchmarks.figures import Figure, Unit
from benchmarks.machine import Machine
from benchmarks.million.calls import CALLS, EXEMPT
from benchmarks.million.worlds import KINDS, World
from tests.server.calling import all_rpcs, method_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PLACE = list(Figure.__dataclass_fields__).index("ratio")
# They are held against a limit: a share of a core, a step of the loop, microseconds of the engine.
WITHOUT_RATIO = {
    "idle.py",
    "many_parents.py",
    "operators.py",
    "engine.py",
    "engine_groups.py",
    "engine_sticky.py",
}
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


def test_a_run_of_everything_has_the_long_ones_too():
    """With fewer jobs, as all that is kept; by name each runs as it is called."""
    every = choose("")
    assert (every.short, every.long) == ([*EVERY.values()], [*SHORTENED.values()])
    assert [*SHORTENED] == [*LONG]
    some = choose("p1, million")
    assert (some.short, some.long) == ([EVERY["P1"]], [LONG["million"]])
    kept = choose("schedules,million", is_kept=True)
    assert (kept.short, kept.long) == ([], [SHORTENED["schedules"], SHORTENED["million"]])
    with pytest.raises(ValueError, match="no benchmark P99"):
        choose("P1,P99")


@pytest.mark.parametrize(
    ("words", "whole"),
    [("", True), ("schedules,million", True), ("million", False), ("P1", False)],
)
def test_only_whole_tables_are_kept(words, whole):
    """Else a table would have rows of two runs, or lose some."""
    assert is_whole(words) is whole


def test_each_table_of_the_docs_is_written_in_its_own_place(tmp_path, monkeypatch):
    """And what stands around them stays."""
    docs = tmp_path / "benchmarks.md"
    places = [report.BEGIN, report.END, "between", report.BEGIN_LONG, report.END_LONG]
    docs.write_text("\n".join(["before", *places, "after"]))
    assert all(report.DOCS.read_text().count(place) == 1 for place in places if place[0] == "<")
    monkeypatch.setattr(report, "DOCS", docs)
    monkeypatch.setattr(report, "README", tmp_path / "README.md")
    around = Machine("a fast one", 2, 1 << 30, "Linux", "ext4", 1e-4, 1e-3, "Python 3.11")
    for _ in range(2):
        assert report.write([Figure("P1", "pushes", 7.0, Unit.JOBS)], around) == [docs]
        long = [Figure("P15", "a step", 0.5, Unit.TIME)]
        assert report.write_long(long, around, "million") == [docs]
    text = docs.read_text()
    first, second = text.split("between")
    assert first.startswith("before")
    assert second.endswith("after")
    assert (first.count("pushes"), second.count("a step")) == (1, 1)
    assert "a step" not in first
    assert "pushes" not in second
    assert "by `python -m benchmarks --write`." in first
    assert "by `python -m benchmarks --write --only million`." in second
