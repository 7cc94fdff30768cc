"""The tidy test: sizes, names and words, with a ratchet.

A file over 300 lines or a function over 50 must stand in `tidy_exceptions.toml` with its reason and
its size, and the size there may only shrink. This knows the shape of the code and nothing of what
it does; generated stubs are left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXCEPTIONS = Path(__file__).with_name("tidy_exceptions.toml")
CODE = ("service", "clients/python", "pipeline", "tests", "benchmarks", "scripts")
FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 50
# The parts of statements that have statements in them.
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}

# Who wrote a line, with which tool and in which room, is not the project's business. The brackets
# keep this file from matching itself.
FOREIGN_WORDS = re.compile(
    r"claud[e]\b|anthropi[c]|openA[I]\b|chatgp[t]|copilo[t]|sub-?agen[t]|language mode[l]"
    r"|\bA[I][- ](agent|assistant|generated|tool|written)|/work/(main|plan|shared)\b|\.librar[y]/",
    re.IGNORECASE,
)


def modules() -> list[Path]:
    """Every Python file of the project that a person wrote."""
    found = (path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    left_out = ("_pb2", "node_modules")
    return sorted(path for path in found if not any(word in str(path) for word in left_out))


def go_files() -> list[Path]:
    """Every Go file of the project that a person wrote."""
    found = [*(ROOT / "clients/go").rglob("*.go"), *(ROOT / "benchmarks").rglob("*.go")]
    return sorted(path for path in found if not path.name.endswith(".pb.go"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(node: ast.AST, prefix: str = "") -> list[tuple[str, int]]:
    """Qualified name and lines of each function, decorators not counted."""
    found = []
    # They are statements: to look into expressions would take twice as long as to parse.
    for inner in (each for body in BODIES for each in getattr(node, body, ())):
        name = prefix
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{inner.name}."
            if not isinstance(inner, ast.ClassDef):
                found.append((name[:-1], (inner.end_lineno or inner.lineno) - inner.lineno + 1))
        found.extend(functions(inner, name))
    return found


@dataclass(frozen=True)
class Seen:
    """What these tests look at in a module."""

    functions: list[tuple[str, int]]
    is_silent: bool


@cache
def seen() -> dict[Path, Seen]:
    """Each module, parsed once."""
    trees = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in modules())
    return {path: Seen(functions(tree), not ast.get_docstring(tree)) for path, tree in trees}


def long_files() -> dict[str, int]:
    sizes = {name_of(path): line_count(path) for path in modules() + go_files()}
    return {name: lines for name, lines in sizes.items() if lines > FILE_LINES_MAX}


def long_functions() -> dict[str, int]:
    found = {}
    for path, module in seen().items():
        for function, lines in module.functions:
            if lines > FUNCTION_LINES_MAX:
                found[f"{name_of(path)}:{function}"] = lines
    return found


def exceptions(kind: str) -> dict[str, int]:
    entries = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8")).get(kind, [])
    for entry in entries:
        assert len(entry["reason"]) > 20, f"{entry['name']}: a reason is a sentence"
    return {entry["name"]: entry["lines"] for entry in entries}


def ratchet_complaints(real: dict[str, int], allowed: dict[str, int], limit: int) -> list[str]:
    """Say what is wrong between what is there and what is listed."""
    complaints = []
    for name, lines in real.items():
        if name not in allowed:
            complaints.append(f"{name} has {lines} lines, over {limit}: find the seam")
        elif lines > allowed[name]:
            complaints.append(f"{name} grew from {allowed[name]} to {lines} lines")
        elif lines < allowed[name]:
            complaints.append(
                f"{name} shrank from {allowed[name]} to {lines} lines: lower its entry"
            )
    gone = sorted(set(allowed) - set(real))
    return complaints + [f"{name} is within {limit} lines now: delete its entry" for name in gone]


def test_files_stay_within_300_lines():
    """A longer file is listed with a reason, and only shrinks."""
    complaints = ratchet_complaints(long_files(), exceptions("file"), FILE_LINES_MAX)
    assert not complaints, "\n".join(complaints)


def test_functions_stay_within_50_lines():
    """A longer function is listed with a reason, and only shrinks."""
    complaints = ratchet_complaints(long_functions(), exceptions("function"), FUNCTION_LINES_MAX)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("real", "allowed", "said"),
    [
        ({"a": 301}, {}, "find the seam"),
        ({"a": 302}, {"a": 301}, "grew"),
        ({"a": 301}, {"a": 302}, "lower its entry"),
        ({}, {"a": 301}, "delete its entry"),
    ],
)
def test_ratchet_turns_one_way(real, allowed, said):
    """Each way in which code and list can differ is found."""
    assert said in ratchet_complaints(real, allowed, FILE_LINES_MAX)[0]


def test_ratchet_is_silent_when_all_is_as_listed():
    """What is as long as listed passes."""
    assert not ratchet_complaints({"a": 301}, {"a": 301}, FILE_LINES_MAX)


def test_functions_are_found_wherever_they_are():
    """In classes, in one another, and in each part of a compound statement."""
    code = """
class A:
    def a(self):
        async def b():
            return [lambda: 1]
if x:
    def c(): pass
else:
    for y in z:
        @d
        def e():
            pass
try:
    def f(): pass
except E:
    def g(): pass
finally:
    match x:
        case 1:
            with y:
                def h(): pass
"""
    inner = {"A.a": 3, "A.a.b": 2}
    assert dict(functions(ast.parse(code))) == inner | {"c": 1, "e": 2, "f": 1, "g": 1, "h": 1}


def test_every_module_opens_with_prose():
    """A module says what it is; an empty `__init__` of a test package has nothing to say."""
    silent = [
        name_of(path)
        for path, module in seen().items()
        if module.is_silent
        and not (name_of(path).startswith("tests/") and path.stat().st_size == 0)
    ]
    assert not silent, f"no docstring in {silent}"


def test_modules_are_named_for_what_they_are():
    """A module called after its usefulness would attract everything."""
    vague = [
        name_of(path)
        for path in modules()
        if FORBIDDEN_NAMES & set(re.split(r"[/_.]", name_of(path)))
    ]
    assert not vague, f"rename {vague}"


def tracked_files() -> list[Path]:
    """What git would ship; a folder without git, as from an archive, has nothing else in it."""
    if not (ROOT / ".git").exists():
        return [path for path in ROOT.rglob("*") if path.is_file()]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_speaks_of_the_workshop():
    """The project speaks of itself, never of the tools and rooms it was made in."""
    spoken = []
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        for match in FOREIGN_WORDS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            spoken.append(f"{name_of(path)}:{line}: {match.group()}")
    assert not spoken, "\n".join(spoken)
