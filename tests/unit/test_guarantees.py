"""The guide to the promises is true: the tests it names exist, and its numbers are the engine's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from jobline_server.engine.invariants import INVARIANTS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guarantees.md"
PROMISE = re.compile(r"^### (G\d+): [^\n]+\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> dict[str, str]:
    """Number → text of each promise."""
    return dict(PROMISE.findall(GUIDE.read_text(encoding="utf-8")))


def is_there(file: str, name: str) -> bool:
    """Whether a test of that name stands in a file."""
    path = ROOT / file
    if not path.exists():
        return False
    found = re.compile(rf"^\s*(async )?(def|class) {name}\b|^{name} = ", re.MULTILINE)
    return bool(found.search(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("number", promises())
def test_each_promise_names_tests_that_exist(number):
    named = TEST.findall(promises()[number])
    assert named, f"{number} names no test"
    assert not [one for one in named if not is_there(*one)]


def names_a_mistake(path: Path) -> set[str]:
    """The tests of a file whose docstring names a mistake of others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {test.name for test in tests if "Predecessors: " in (ast.get_docstring(test) or "")}


def test_mistakes_of_others_are_those_that_tests_name():
    """Trial D11: the page lists each test whose docstring names one, and no other."""
    section = GUIDE.read_text(encoding="utf-8").split("## Mistakes of others")[1].split("\n## ")[0]
    files = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and "Predecessors: " in path.read_text(encoding="utf-8")
    ]
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in files
        for name in names_a_mistake(path)
    }
    assert set(TEST.findall(section)) == named


def test_what_the_engine_checks_is_promised_as_an_invariant():
    checked = {number for number, text in promises().items() if "invariant." in text}
    assert checked == set(INVARIANTS)


def test_numbers_are_either_promised_or_not_there_yet():
    """Numbers are kept: none is used for something else, none is left out."""
    later = GUIDE.read_text(encoding="utf-8").split("## Not there yet")[1]
    to_come = set(re.findall(r"^\| (G\d+)", later, re.MULTILINE)) - {"G7"}
    assert not to_come & set(promises())
    assert to_come | set(promises()) == {f"G{number}" for number in range(1, 29)}
