"""The whole server within a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import jobline_server
from jobline import Client, Worker, job


@job(queue="numbers")
def double(number: int) -> int:
    return 2 * number


async def test_goes_on_where_it_was(tmp_path: Path) -> None:
    async with jobline_server.embedded(tmp_path / "jobs") as client:
        pushed = await double.push(client, 21)
    async with jobline_server.embedded(str(tmp_path / "jobs")) as client:
        await Worker(client.target, [double]).serve(exit_when_idle=0.05)
        assert (await client.jobs.get(pushed.id)).result_value(int) == 42


async def test_settings_are_those_of_a_server(tmp_path: Path) -> None:
    async with jobline_server.embedded(tmp_path, max_payload_bytes="1KiB") as client:
        with pytest.raises(Exception, match="payload"):
            await client.push("mail", b"x" * 2_000)


async def test_a_directory_has_one_server(tmp_path: Path) -> None:
    async with jobline_server.embedded(tmp_path):
        with pytest.raises(Exception, match=r"another server|in use|locked"):
            async with jobline_server.embedded(tmp_path):
                pass


async def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    """A socket's path is at most 107 bytes."""
    async with jobline_server.embedded(tmp_path / ("long" * 40)) as client:
        await client.push("mail", b"")
        assert len(client.target) < 100


async def test_other_threads_reach_it(tmp_path: Path) -> None:
    async with jobline_server.embedded(tmp_path) as client:

        def push() -> int:
            with Client(client.target) as blocking:
                return blocking.push("mail", b"").id

        pushed = await asyncio.to_thread(push)
        assert (await client.jobs.get(pushed)).queue == "mail"


def test_no_such_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'embeded'"):
        _ = jobline_server.embeded  # misspelt
