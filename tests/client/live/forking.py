"""A program that makes a client, forks, and has both children do the same with it.

    python -m tests.client.live.forking ADDRESS idle|used|held|async|async-used|async-loop|worker

prints a line of JSON for each child, and at last one of the parent. What is done with the client
before the fork: `idle` nothing, `used` a push, `held` a push while another thread pushes and the
locks are taken. `async-loop`: the child runs the loop in which the parent was connected. `worker`:
one runs at the fork, and the child makes its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jobline import AsyncClient, Client, JoblineError, Worker

PUSHES = 5
# A child that hangs ends by itself.
CHILD_SECONDS = 20


def own(number: int) -> dict[str, Any]:
    """What a push has of its own: a header, and every other one a key of its process."""
    key = f"{os.getpid()}-{number}" if number % 2 else None
    return {"headers": {"by": f"{os.getpid()}-{number}"}, "job_key": key}


def push_all(client: Client) -> list[int]:
    """Pushes the same payloads in each of the ways; the ids."""
    with ThreadPoolExecutor(PUSHES) as threads:
        pushes = threads.map(
            lambda number: client.push("forked", b"same", **own(number)), range(PUSHES)
        )
        ids = [pushed.id for pushed in pushes]
    for _ in range(PUSHES):
        ids += [pushed.id for pushed in client.push_many("forked", [b"same", {"a": 1}])]
        ids += client.push_payloads("forked", [b"same", b"same"]).ids
    return ids


async def push_all_async(client: AsyncClient) -> list[int]:
    """The same, awaited."""
    pushes = (client.push("forked", b"same", **own(number)) for number in range(PUSHES))
    ids = [pushed.id for pushed in await asyncio.gather(*pushes)]
    for _ in range(PUSHES):
        ids += [pushed.id for pushed in await client.push_many("forked", [b"same", {"a": 1}])]
        ids += (await client.push_payloads("forked", [b"same", b"same"])).ids
    return ids


def blocking_child(client: Client) -> dict[str, Any]:
    """What a child did, and to whom it was connected."""
    ids = push_all(client)
    (pulled,) = client.pull("given")
    client.jobs.get(ids[0])
    client.close()
    return {"ids": ids, "pulled": pulled.id}


async def work_async(client: AsyncClient) -> dict[str, Any]:
    """The same, awaited."""
    ids = await push_all_async(client)
    (pulled,) = await client.pull("given")
    await client.jobs.get(ids[0])
    await client.close()
    return {"ids": ids, "pulled": pulled.id}


def async_child(client: AsyncClient) -> dict[str, Any]:
    """The same in a loop of its own."""
    return asyncio.run(work_async(client))


def fork(child: Any, client: Any) -> int:
    """A child that works with the client, says what it did, and ends."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(CHILD_SECONDS)
    try:
        said = child(client)
    except JoblineError as error:
        said = {"error": type(error).__name__, "message": error.message}
    os.write(1, f"{json.dumps(said)}\n".encode())
    os._exit(0)


def wait_for(pids: list[int]) -> None:
    """Ends with the first child that did not end well."""
    for pid in pids:
        if status := os.waitpid(pid, 0)[1]:
            sys.exit(f"a child ended with {status}")


def blocking(address: str, how: str) -> None:
    """A blocking client."""
    with Client(address, timeout=10) as client:
        if how != "idle":
            client.push("parent", b"before")
        pusher = client._pushers()
        if how == "held":
            with pusher._lock:
                pids = [fork(blocking_child, client) for _ in range(2)]
        else:
            pids = [fork(blocking_child, client) for _ in range(2)]
        wait_for(pids)
        print(json.dumps({"ids": [client.push("parent", b"after").id]}), flush=True)


def awaited(address: str, how: str) -> None:
    """An asyncio client."""
    client = AsyncClient(address, timeout=10)

    async def used() -> None:
        await client.push("parent", b"before")
        wait_for([fork(in_no_loop, client)])
        print(json.dumps({"ids": [(await client.push("parent", b"after")).id]}), flush=True)

    if how == "async-used":
        asyncio.run(used())
    else:
        wait_for([fork(async_child, client) for _ in range(2)])


def in_one_loop(address: str, _how: str) -> None:
    """An asyncio client in a loop that does not run at the fork, and goes on in both processes."""
    client = AsyncClient(address, timeout=10)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.push("parent", b"before"))
    wait_for([fork(lambda client: loop.run_until_complete(work_async(client)), client)])
    after = loop.run_until_complete(client.push("parent", b"after"))
    print(json.dumps({"ids": [after.id]}), flush=True)


def working(address: str, _how: str) -> None:
    """A worker that is connected when its process forks; its child does as the parent did."""
    worker = Worker(address, concurrency=1)
    done: list[bytes] = []
    begun = threading.Event()

    @worker.handler("work")
    def work(payload: bytes) -> None:
        done.append(payload)
        begun.set()

    thread = threading.Thread(target=worker.run, kwargs={"exit_when_idle": "2s"})
    thread.start()
    begun.wait(CHILD_SECONDS)
    pid = fork(child_worker, address)
    wait_for([pid])
    with Client(address) as client:
        after = client.push("work", b"after").id
        thread.join()
        state = client.jobs.get(after).state.name
    print(json.dumps({"done": len(done), "after": state}), flush=True)


def child_worker(address: str) -> dict[str, Any]:
    """A worker made in a child."""
    worker = Worker(address, concurrency=1)
    done: list[bytes] = []

    @worker.handler("child")
    def work(payload: bytes) -> None:
        done.append(payload)

    worker.run(exit_when_idle="500ms")
    return {"done": len(done)}


def in_no_loop(client: AsyncClient) -> dict[str, Any]:
    """A child of a fork inside a loop has a copy of that loop, which does not run."""
    asyncio.events._set_running_loop(None)
    return async_child(client)


if __name__ == "__main__":
    kinds = {"async": awaited, "async-used": awaited, "async-loop": in_one_loop, "worker": working}
    kinds.get(sys.argv[2], blocking)(*sys.argv[1:])
