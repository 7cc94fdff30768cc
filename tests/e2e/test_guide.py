"""The pages of docs/guide/ work: the `python` blocks of a page run in order, as one program, on a
real server, and print what the `text` block behind each says. `…` stands for any text of a line.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

from jobline_server.testing import running_server

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(path for path in GUIDE.glob("*.md") if path.stem != "README")
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
SHOWN_ADDRESS = "localhost:7070"


def run_page(page: Path, address: str) -> list[tuple[str, str]]:
    """Runs the blocks of a page; returns what each printed, and what the page says of it."""
    # Types that a block declares are looked up in their module.
    shown = sys.modules[f"guide_{page.stem}"] = ModuleType(f"guide_{page.stem}")
    printed: list[tuple[str, str]] = []
    for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
        text = block["code"].replace(SHOWN_ADDRESS, address)
        code = compile(text, f"{page.name}, block {number}", "exec", dont_inherit=True)
        out = io.StringIO()
        with redirect_stdout(out):
            exec(code, shown.__dict__)
        printed.append((out.getvalue(), block["printed"] or ""))
    return printed


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
async def test_page_works_and_prints_what_it_says(page: Path) -> None:
    """Each page has a server of its own."""
    async with running_server(webhook_private_networks=True) as server:
        blocks = await asyncio.to_thread(run_page, page, server.address)

    assert blocks, "a page of the guide has a program"
    for printed, shown in blocks:
        lines, wanted = printed.splitlines(), shown.splitlines()
        assert len(lines) == len(wanted), printed
        for line, pattern in zip(lines, wanted, strict=True):
            assert fnmatchcase(line, pattern.replace("[", "[[]").replace("…", "*")), line


def test_every_page_is_listed() -> None:
    """A page that nobody finds is of no use."""
    listed = (GUIDE / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in listed] == []
