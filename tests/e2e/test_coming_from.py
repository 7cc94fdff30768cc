"""What docs/coming-from.md shows of Jobline works: the last column of each table, line by line, on
a real server with a worker beside it.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from jobline import Outcome, Worker
from jobline.testing import make_context
from jobline_server.testing import running_server_in_thread

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "localhost:7070"
SECTIONS = dict(SECTION.findall(PAGE))


def rows_of(section: str) -> list[list[str]]:
    """The cells of each row of the table, without its head."""
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [re.split(r"(?<!\\)\s*\|\s*", line.strip("| ")) for line in lines]


@pytest.fixture(scope="module")
def address():
    """A server, and a worker that answers those who wait."""
    with running_server_in_thread() as server:
        worker = Worker(server.address, hard_stop=1, soft_stop=1)
        worker.handler("echo", "echo")(lambda payload: payload)
        thread = Thread(target=worker.run)
        thread.start()
        yield server.address
        worker.stop()
        thread.join()


@pytest.mark.parametrize("name", SECTIONS)
def test_lines_of_jobline_work(name: str, address: str) -> None:
    """In one program. A decorator gets a function, an outcome is raised as in a handler."""
    shown = sys.modules[f"coming_from_{name}"] = ModuleType(f"coming_from_{name}")
    (opening,) = BLOCK.findall(PAGE)
    exec(opening.replace(SHOWN_ADDRESS, address), shown.__dict__)
    shown.__dict__["context"] = make_context(phases=["charge", "ship"])
    for cells in rows_of(SECTIONS[name]):
        line = cells[-1].strip("`").replace(SHOWN_ADDRESS, address)
        if line.startswith("@"):
            line += "\ndef handler(payload): ..."
        with suppress(Outcome):
            exec(compile(line, name, "exec", dont_inherit=True), shown.__dict__)
            assert not line.startswith("raise")
    shown.__dict__["client"].close()


def test_every_row_has_a_line_of_each() -> None:
    assert list(SECTIONS) == ["Celery", "Sidekiq", "BullMQ", "River", "Oban", "Temporal"]
    for name, section in SECTIONS.items():
        rows = rows_of(section)
        assert len(rows) > 10, name
        for cells in rows:
            assert len(cells) == 4, cells
            assert all(re.fullmatch(r"`[^`]+`", cell) for cell in cells[2:]), cells
