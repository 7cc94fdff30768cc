"""docs/http.md works: its `sh` blocks run in order, each in a bash of its own, on a real server and
print what the `text` block behind each says. `…` stands for any text of a line.
"""

from __future__ import annotations

import asyncio
import re
from fnmatch import fnmatchcase
from pathlib import Path

from jobline_server.testing import running_server

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
BLOCK = re.compile(
    r"^```sh\n(?P<code>.*?)^```\n+^```text\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL
)
SHOWN_ADDRESS = "localhost:7071"


async def run(script: str) -> str:
    """What a script prints."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


async def test_the_page_works_and_prints_what_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```sh\n")
    async with running_server() as server:
        for block in blocks:
            printed = await run(block["code"].replace(SHOWN_ADDRESS, server.http))

            lines, wanted = printed.splitlines(), block["printed"].splitlines()
            assert len(lines) == len(wanted), printed
            for line, pattern in zip(lines, wanted, strict=True):
                assert fnmatchcase(line, pattern.replace("[", "[[]").replace("…", "*")), line
