"""Bad input: bad_input.yaml against a real server, over a socket, on both transports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc import aio

from tests.server import world
from tests.server.calling import all_rpcs, call, encoded

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("bad_input.yaml").read_text(encoding="utf-8")
)
ROWS = [
    pytest.param(rpc, row, id=f"{rpc}: {row['why']}") for rpc, rows in TABLE.items() for row in rows
]
# Codes that say for certain that nothing happened (G5).
DEFINITE = {
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
}


def requests_of(rpc: str, row: dict[str, Any]) -> list[bytes]:
    """The messages of a row."""
    if "bytes" in row:
        return [bytes.fromhex(row["bytes"])]
    return [encoded(rpc, frame) for frame in row.get("frames", [row.get("input")])]


Picture = tuple[bytes, bytes]


@pytest.fixture(scope="session")
async def before(filled: aio.Channel) -> Picture:
    """What jobs and queues are like, before any row and after each."""
    return await world.picture(filled)


@pytest.mark.parametrize(("rpc", "row"), ROWS)
async def test_bad_input_is_refused_and_changes_nothing(
    filled: aio.Channel, before: Picture, rpc: str, row: dict[str, Any]
) -> None:
    """Code, reason and field are those of the table, and jobs and queues are as they were."""
    refusal = await call(filled, rpc, requests_of(rpc, row))

    assert refusal is not None, "it was accepted"
    code = row.get("code", "INVALID_ARGUMENT")
    reason = row.get("reason", "INVALID_FIELD")
    said = (refusal.code, refusal.reason, refusal.field)
    assert said == (code, reason, row.get("field", "")), refusal.message
    assert code in DEFINITE
    assert refusal.domain == ("jobline" if reason else "")
    assert len(refusal.message) < 200
    assert not refusal.message.startswith(f"{refusal.field}: {refusal.field}"), "it stammers"
    assert await world.picture(filled) == before


def test_every_rpc_has_rows() -> None:
    """No RPC is forgotten, and none is there that is not served."""
    assert set(TABLE) == set(all_rpcs())


def test_rows_say_what_is_wrong_once() -> None:
    """A row has one input and a name of its own."""
    for rpc, rows in TABLE.items():
        names = [row["why"] for row in rows]
        assert len(set(names)) == len(names), rpc
        assert all(len({"input", "frames", "bytes"} & set(row)) == 1 for row in rows), rpc
