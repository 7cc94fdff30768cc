"""Writes the blocking client from the async one, or with --check says whether it is up to date.

    python scripts/blocking_client.py [--check]

`jobline/_asynchronous/` is written by hand. Each of its files becomes one of `jobline/_blocking/`:
the rules below are applied to its text, docstrings included, and ruff removes the imports that are
left over, sorts the others, and formats. What differs in more than words is written by hand on both
sides, with the same names: the connection, the pusher, the waits, and the prose of `__init__`.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "clients" / "python" / "jobline"
SOURCE = CLIENT / "_asynchronous"
TARGET = CLIENT / "_blocking"
BY_HAND = {"__init__.py", "connection.py", "pusher.py", "waits.py"}

HEADER = "# Generated from jobline/_asynchronous/{name} by `make gen`: change that file instead.\n"

# What is true of one client alone: text as it stands in the source, and what the other one says.
TEXTS = {
    """It belongs to the event loop of that use: calls from another loop
    raise FailedPrecondition. So does a connection in a child of a process that was connected at the
    fork; one that was not leaves a child free to connect.""": """\
One client serves all threads of a process; a child of a fork
    connects anew, and is a producer of its own.""",
    "Pushes made at the same time share": "Pushes that threads make at the same time share",
    """only these kinds of work. Cancelled, it releases what it
        may have been leased. Raises InvalidArgument and other refusals, or Unavailable.""": """\
only these kinds of work. Raises InvalidArgument and other
        refusals, or Unavailable.""",
}

# Patterns, each at the start of a word, applied in order.
RULES = {
    r"async (def|for|with)": r"\1",
    r"await ": "",
    r"awaited": "blocking",
    r"AsyncCleanup": "Cleanup",
    r"AsyncClient": "Client",
    r"AsyncEntityRef": "EntityRef",
    r"AsyncGenerator\[(\w+), None\]": r"Iterator[\1]",
    r"AsyncGenerator|AsyncIterator": "Iterator",
    r"Awaitable\[(\w+)\]": r"\1",
    r"(\w+Service)AsyncStub": r"\1Stub",
    r"__aenter__": "__enter__",
    r"__aexit__": "__exit__",
    r"aio\.Channel": "grpc.Channel",
    r"jobline\._asynchronous": "jobline._blocking",
    r"through(?=[(,])": "through_plain",
}

# F401: imports that nothing uses any more; I001: their order; UP028: `yield from`.
FIXES = ("--select", "F401,I001,UP028", "--fix", "--unsafe-fixes", "--quiet")


def blocking(source: str, used: set[str]) -> str:
    """Returns the blocking form of a module, not formatted; adds the rules it took to `used`."""
    for text, instead in TEXTS.items():
        if text in source:
            used.add(text)
            source = source.replace(text, instead)
    for pattern, instead in RULES.items():
        source, count = re.subn(rf"(?<!\w){pattern}", instead, source)
        if count:
            used.add(pattern)
    return source


def formatted(source: str, path: Path) -> str:
    """Returns the source as ruff leaves it."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    for command in (("check", *FIXES), ("format", "--quiet")):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", str(path), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def generated() -> dict[str, str]:
    """Returns the files of the blocking client by name. Raises ValueError for a rule that nothing
    uses: what it was for has gone.
    """
    used: set[str] = set()
    files = {}
    for path in sorted(SOURCE.glob("*.py")):
        if path.name not in BY_HAND:
            text = blocking(path.read_text(encoding="utf-8"), used)
            files[path.name] = formatted(HEADER.format(name=path.name) + text, TARGET / path.name)
    unused = [rule for rule in (*TEXTS, *RULES) if rule not in used]
    if unused:
        raise ValueError(f"rules that match nothing: {unused}")
    return files


def drift(files: dict[str, str]) -> list[str]:
    """Returns the lines of a diff between the files and those of the tree."""
    lines: list[str] = []
    present = {path.name for path in TARGET.glob("*.py")} - BY_HAND
    for name in sorted(present | set(files)):
        path = TARGET / name
        old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        new = files.get(name, "").splitlines()
        lines += difflib.unified_diff(old, new, str(path), f"generated {name}", lineterm="")
    return lines


def main() -> None:
    """Writes the files, or compares them."""
    files = generated()
    if "--check" in sys.argv[1:]:
        if lines := drift(files):
            print(*lines, sep="\n")
            sys.exit("The blocking client is not up to date. Run `make gen` and commit the result.")
        print("blocking client: up to date")
        return
    for path in TARGET.glob("*.py"):
        if path.name not in BY_HAND | set(files):
            path.unlink()
    for name, text in files.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    print(f"blocking client: {len(files)} files in {TARGET}")


if __name__ == "__main__":
    main()
