"""What docs/clients.md shows works: each program pushes a job and works it, on a real server, where
its language is on the machine. Its vector holds, too.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
import yaml

from jobline import AsyncClient
from jobline_server.testing import running_server
from tests.conformance.runner import Servers, run_vector

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "localhost:7071"
# Queue and file of each program, and the commands that run it; the first word must be there.
PROGRAMS = {
    "sh": ("from-curl", "work.sh", ["bash -eu work.sh"], ["bash", "curl"]),
    "ruby": ("from-ruby", "work.rb", ["ruby work.rb"], ["ruby"]),
    "java": ("from-java", "Work.java", ["java Work.java"], ["java", "javac"]),
    "csharp": (
        "from-csharp",
        "Work.cs",
        ["mcs -r:System.Net.Http.dll Work.cs", "mono Work.exe"],
        ["mcs", "mono"],
    ),
}


def block_of(language: str) -> str:
    """The first block in a language; those behind it are no programs."""
    found: list[tuple[str, str]] = BLOCK.findall(PAGE)
    return next(code for name, code in found if name == language)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("language", PROGRAMS)
async def test_ten_lines_push_and_work_a_job(language: str, tmp_path: Path) -> None:
    queue, file, commands, needed = PROGRAMS[language]
    missing = [tool for tool in needed if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on this machine")
    async with running_server() as server, AsyncClient(server.address) as client:
        (tmp_path / file).write_text(block_of(language).replace(SHOWN_ADDRESS, server.http))
        for command in commands:
            process = await asyncio.create_subprocess_exec(
                *command.split(),
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            printed, _ = await process.communicate()
            assert process.returncode == 0, printed.decode()
        (job,) = [job async for job in client.jobs.list(queue=queue, include_payloads=True)]
    assert (job.state.name, job.payload, job.result, job.job_key) == (
        "COMPLETED",
        b"hello",
        b"done",
        "hello-1",
    )


async def test_the_vector_of_the_page_holds() -> None:
    (vector,) = yaml.safe_load(block_of("yaml"))
    async with running_server() as server:
        await asyncio.to_thread(run_vector, vector, Servers(server.address, server.address))
