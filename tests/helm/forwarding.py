"""What the network of a node does for Services: connections to their addresses go on to a pod.
Arguments are `ADDRESS:PORT=ADDRESS:PORT`, of a Service and of a pod.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

PIECE_BYTES = 1 << 16


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies one direction of a connection to its end."""
    with suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def forward(rule: str) -> asyncio.Server:
    """Listens at the first address, and connects to the second."""
    (host, port), (to_host, to_port) = (side.split(":") for side in rule.split("="))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            pod = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, pod[1]), copy(pod[0], writer))

    return await asyncio.start_server(connected, host, int(port))


async def main() -> None:
    """Forwards until stdin ends."""
    servers = [await forward(rule) for rule in sys.argv[1:]]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(main())
