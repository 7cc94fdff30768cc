"""Each module of the runtime has a file of tests of its own, in the room of the same name."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
RUNTIME = TESTS.parents[2] / "service" / "jobline_server" / "runtime"
# Modules, as room/name, whose tests are still to be written.
MISSING: tuple[str, ...] = ()


def modules() -> list[Path]:
    found = [path.relative_to(RUNTIME) for path in RUNTIME.rglob("*.py")]
    return sorted(path for path in found if path.name != "__init__.py")


def file_for(module: Path) -> Path:
    return TESTS / module.parent / f"test_{module.name}"


def test_the_modules_are_found() -> None:
    """Else the other test could not fail."""
    assert {Path("core.py"), Path("calls/pulls.py")} <= {*modules()}


def test_each_module_has_tests_of_its_own() -> None:
    """What is listed as missing is missing: the list may only shrink."""
    missing = [str(module) for module in modules() if not file_for(module).exists()]
    assert missing == sorted(MISSING)
