"""Everything at once, by every door, against servers in processes of their own: random messages and
requests, open and guarded, with and without credentials. Whatever arrives is answered with a code
that says what happened and with a text that says nothing of the server's insides, or of what others
have there; afterwards the server serves as before, and is as large as before.

`make fuzz MESSAGES=100000 SEED=7` sends more. A failure names the door and the bytes; seed and
count make the same run again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from grpc import aio

from benchmarks.processes import memory_bytes
from jobline_server.testing.processes import ServerProcess
from tests.server import fuzzed_server
from tests.server.access import auth_file, key, of_verbs
from tests.server.conftest import connect
from tests.server.fuzz_cases import HEALTH, Method, all_methods, frames_of
from tests.server.fuzz_doors import (
    ANSWER_SECONDS,
    WAITING_SECONDS,
    Answer,
    Headers,
    by_client,
    by_frames,
    by_http,
)
from tests.server.fuzz_requests import grpc_request, http_request
from tests.server.fuzzing import Maker

# Over all methods and doors, both transports, open and guarded.
MESSAGES = int(os.environ.get("FUZZ_MESSAGES", "4000"))
SEED = os.environ.get("FUZZ_SEED", "1")
# Some 200 a second, where the machine does nothing else.
pytestmark = pytest.mark.timeout(120 + MESSAGES // 20)
AT_ONCE = 40
ROUNDS = 2
# What a server may be larger by after as many messages again: the heap of a process that had its
# largest requests at other moments.
GROWTH_BYTES_MAX = 24 << 20

GOOD = {
    *("OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED"),
    *("UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "ABORTED"),
    # What a transport or HTTP says of requests that are none.
    *("", "HTTP 200", "HTTP 204", "HTTP 301", "HTTP 307", "HTTP 400", "HTTP 401", "HTTP 403"),
    *("HTTP 404", "HTTP 405", "HTTP 409", "HTTP 413", "HTTP 415", "HTTP 421", "HTTP 429"),
    *("HTTP 431", "HTTP 501"),
}
# Of calls that wait, and of requests that are not whole.
GIVEN_UP = {"DEADLINE_EXCEEDED", "CANCELLED", "NONE YET"}
# A call with a time-out of its own.
TIMED_OUT = {"DEADLINE_EXCEEDED", "HTTP 504", "HTTP 408"}
# What gRPC itself replies to a request that breaks its protocol: never of a message, always this.
GRPCS_OWN = re.compile(
    rb"Error parsing '[\w:-]+' metadata|Failed parsing HTTP/2|Missing request message|"
    rb"Unexpected EOF decoding stream|protocol error: received message with |http2 error|"
    rb"Compression bit set but no encoding|Decompression failed|Error decompressing"
)
SECRET = fuzzed_server.SECRET.encode()
LEAKS = re.compile(
    rb"Traceback|object at 0x|File \"|site-packages|\.py\b|/work/|/tmp/|/root/|/home/|<class|"
    rb"<function|<built-in|[a-z]Error\b|Exception|NoneType|jl_[\w-]{43}|" + SECRET
)


@dataclass
class Found:
    """What was seen: how often each code came by each door, and what was wrong."""

    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """A server under fire."""

    server: ServerProcess
    transport: str
    is_guarded: bool
    channel: aio.Channel
    maker: Maker

    @property
    def callers(self) -> list[str]:
        """Who calls, by the name of a key; nobody shows none, and somebody one that is made up."""
        if not self.is_guarded:
            return ["nobody"]
        return ["root", "root", "stranger", "all-read", "nobody", "somebody"]


@pytest.fixture(scope="module", params=["open", "guarded"])
async def target(
    transport: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Target]:
    folder = tmp_path_factory.mktemp("fuzz")
    is_guarded = request.param == "guarded"
    settings: dict[str, Any] = {"auth": auth_file(folder, of_verbs())} if is_guarded else {}
    async with (
        ServerProcess(folder / "data", transport=transport, **settings) as server,
        connect(server.address) as channel,
    ):
        yield Target(server, transport, is_guarded, channel, Maker(Random(SEED)))


async def test_nothing_that_arrives_breaks_or_opens_a_server(target: Target) -> None:
    """No code that says that the server does not know what happened, no text that leaks."""
    root = bearer("root") if target.is_guarded else []
    sizes = []
    found = Found()
    for number in range(ROUNDS):
        await fuzzed_server.fill(target.channel, root)
        ids = await fuzzed_server.ids(target.channel, root)
        random = Random(f"{SEED} {target.transport} {target.is_guarded} {number}")
        cases = iter(cases_of(random, ids, MESSAGES // 4 // ROUNDS))
        await asyncio.gather(*(send_all(target, cases, found) for _ in range(AT_ONCE)))
        if found.wrong:
            pytest.fail("\n".join(one[:2_000] for one in found.wrong[:20]))
        await fuzzed_server.empty(target.channel, root)
        sizes.append(memory_bytes(target.server.pid))

    print(target.transport, dict(sorted(found.codes.items())), sizes)  # shown by `make fuzz`
    assert sizes[-1] - sizes[0] < GROWTH_BYTES_MAX
    assert await fuzzed_server.serves(target.channel, root)
    assert not bugs_in(target.server.log)
    for door in ("gRPC", "HTTP/2", "HTTP"):
        assert found.codes[door, "OK"] or found.codes[door, "HTTP 200"], door


Case = tuple[str, Method, Random, Maker]


def cases_of(random: Random, ids: list[int], count: int) -> Iterator[Case]:
    """Cases of all methods in turn; each has a chance of its own, whoever is the first to end."""
    methods = all_methods()
    for number in range(count):
        own = Random(random.randbytes(8))
        door = own.choices(["gRPC", "HTTP/2", "HTTP"], [5, 3, 4])[0]
        yield door, methods[number % len(methods)], own, Maker(own, ids)


async def send_all(target: Target, cases: Iterator[Case], found: Found) -> None:
    """Sends cases one after another, as long as there are some."""
    for door, method, random, maker in cases:
        caller = random.choice(target.callers)
        credentials = [] if caller == "nobody" else bearer(caller)
        sent, is_whole, answer = await send(target, door, method, random, maker, credentials)
        found.codes[door, answer.code] += 1
        for what in faults(target, method, caller, is_whole, answer):
            said = answer.said[-500:]
            found.wrong.append(
                f"{what}: {door} {method.path} by {caller}: {answer.code} {said!r} to {sent!r}"
            )


async def send(
    target: Target, door: str, method: Method, random: Random, maker: Maker, credentials: Headers
) -> tuple[object, bool, Answer]:
    """Sends one case; returns what was sent, whether that was a whole request, and the answer."""
    if door == "gRPC":
        frames = frames_of(random, maker, method)
        return frames, True, await by_client(target.channel, method, frames, credentials)
    if door == "HTTP/2":
        headers, (frames_sent, is_whole) = grpc_request(random, maker, method)
        headers += credentials
        seconds = ANSWER_SECONDS if is_whole and not method.waits else WAITING_SECONDS
        answer = await by_frames(target.server.address, headers, frames_sent, seconds)
        return (headers, frames_sent), is_whole, answer
    request, is_whole = http_request(random, maker, method, credentials)
    seconds = ANSWER_SECONDS if is_whole and not method.waits else WAITING_SECONDS
    return request, is_whole, await by_http(target.server.http, request, seconds)


def faults(
    target: Target, method: Method, caller: str, is_whole: bool, answer: Answer
) -> Iterator[str]:
    """Yields what is wrong with an answer."""
    known = GOOD | TIMED_OUT | (GIVEN_UP if method.waits or not is_whole else set())
    if answer.code not in known and (answer.is_ours or not GRPCS_OWN.search(answer.said)):
        yield "a code that tells nothing"
    has_worked = answer.code in {"OK", "HTTP 200"}
    if not has_worked and LEAKS.search(answer.said):
        yield "a text that leaks"
    if not target.is_guarded:
        return
    if caller in {"nobody", "somebody", "stranger"} and SECRET in answer.said + answer.replies:
        yield "what belongs to others"
    if caller in {"nobody", "somebody"} and answer.code == "OK" and HEALTH not in method.path:
        yield "an answer for nobody"


def bearer(name: str) -> Headers:
    """The header with a key."""
    return [("authorization", f"Bearer {key(name)}")]


def bugs_in(log: Path) -> list[str]:
    """The lines of a log that a server writes when something is wrong with it."""
    # gRPC has lines of its own, which are no JSON: of calls that it cancels, for example.
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if json.loads(line)["level"] in {"error", "critical"}]
