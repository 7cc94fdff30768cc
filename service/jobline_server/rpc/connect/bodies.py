"""Makes messages of bodies, and bodies of messages.

Small ones are converted at once. Large JSON, and everything compressed, is converted in one thread
of its own, so that no step of the loop takes long; one at a time, which leaves the loop its share
of the interpreter.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from jobline_server.rpc.connect.failures import JSON
from jobline_server.rpc.connect.heads import Head
from jobline_server.rpc.connect.json_requests import malformed, read_json
from jobline_server.rpc.validate import fields

# Up to these sizes, JSON is read and written in the loop, which takes some ms at worst.
READ_BYTES_AT_ONCE = 8 << 10
WRITTEN_BYTES_AT_ONCE = 4 << 10
# zlib's number for the format of gzip.
GZIP = 31

T = TypeVar("T")


class Bodies:
    """Converts bodies. `close` it when nothing is converted any more."""

    def __init__(self, message_bytes_max: int) -> None:
        self.bytes_max = message_bytes_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobline-json")

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def read(self, body: bytes, head: Head, request: Descriptor) -> bytes:
        """Returns the message of a body, as bytes. Raises `Refused` or `StatusError`."""
        if head.encoding == "gzip" and body:
            body = await self._in_thread(lambda: inflated(body, self.bytes_max))
        if head.media_type != JSON:
            return body
        if len(body) <= READ_BYTES_AT_ONCE:
            return message_of(body, request)
        return await self._in_thread(lambda: message_of(body, request))

    async def write(self, message: bytes, head: Head, reply: Descriptor) -> bytes:
        """Returns the body for a message that is given as bytes."""
        if head.media_type != JSON:
            return message
        if len(message) <= WRITTEN_BYTES_AT_ONCE:
            return json_of(message, reply)
        return await self._in_thread(lambda: json_of(message, reply))

    async def make_json(self, make: Callable[[], object]) -> bytes:
        """Returns the JSON of what a function makes, which takes long."""
        return await self._in_thread(lambda: _dumped(make()))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def message_of(body: bytes, request: Descriptor) -> bytes:
    """Returns the message of a JSON body. An empty body is not JSON: `{}` is the empty message."""
    return read_json(body, GetMessageClass(request)()).SerializeToString()


def json_of(message: bytes, reply: Descriptor) -> bytes:
    """Returns the JSON of a message."""
    values = MessageToDict(GetMessageClass(reply).FromString(message))
    return _dumped(values)


def _dumped(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def inflated(body: bytes, bytes_max: int) -> bytes:
    """Returns the contents of a compressed body; never makes more than one byte too much."""
    stream = zlib.decompressobj(GZIP)
    try:
        contents = stream.decompress(body, bytes_max + 1)
    except zlib.error:
        malformed("the body is not gzip")
    if len(contents) > bytes_max:
        raise fields.too_large("", too_long(bytes_max))
    if not stream.eof or stream.unused_data:
        malformed("the body is not one whole gzip stream")
    return contents


def too_long(bytes_max: int) -> str:
    """Returns the message of the refusal of a body that is too large."""
    return f"a body has at most {bytes_max} bytes"
