"""What holds of every benchmark: nothing is measured here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.figures import Figure

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
