"""Files of keys and roles, and channels that send a token with each call."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from jobline_server.auth.api_keys import hash_of, key_of
from jobline_server.auth.grants import VERBS


def key(name: str) -> str:
    """The API key of a name: the same one each time."""
    return key_of(sha256(name.encode()).digest())


def role(name: str, *permissions: tuple[Sequence[str], Sequence[str]]) -> str:
    """The lines of a role: (queues, verbs) each."""
    return "".join(
        f"[[roles.{name}]]\nqueues = {list(queues)!r}\nverbs = {list(verbs)!r}\n"
        for queues, verbs in permissions
    )


def api_key(name: str, *roles: str, expires: str = "") -> str:
    """The lines of an API key."""
    end = f", expires = {expires}" if expires else ""
    return (
        f'[[keys]]\nname = "{name}"\nroles = {list(roles)!r}\n'
        f'hashes = [{{ hash = "{hash_of(key(name))}"{end} }}]\n'
    )


def of_verbs(queue: str = "fuzz*") -> str:
    """The lines of a key per verb, on some queues (`fuzz-push`) and on all (`all-push`), of one
    that may do everything (`root`), and of one that may nothing here (`stranger`).
    """
    text = role("root", (["*"], VERBS)) + api_key("root", "root")
    text += role("stranger", (["elsewhere"], VERBS)) + api_key("stranger", "stranger")
    for verb in VERBS:
        text += role(f"fuzz-{verb}", ([queue], [verb])) + api_key(f"fuzz-{verb}", f"fuzz-{verb}")
        text += role(f"all-{verb}", (["*"], [verb])) + api_key(f"all-{verb}", f"all-{verb}")
    return text


def auth_file(folder: Path, text: str) -> Path:
    """Writes a file."""
    path = folder / "auth.toml"
    path.write_text(text)
    return path


class _Adding:
    """Adds metadata to calls of one kind."""

    def __init__(self, metadata: Sequence[tuple[str, str]]) -> None:
        self._metadata = metadata

    async def _call(self, continuation: Any, details: Any, request: Any) -> Any:
        given = [*(details.metadata or ()), *self._metadata]
        return await continuation(details._replace(metadata=given), request)

    intercept_unary_unary = intercept_unary_stream = _call
    intercept_stream_unary = intercept_stream_stream = _call


class _UnaryUnary(_Adding, aio.UnaryUnaryClientInterceptor):
    pass


class _UnaryStream(_Adding, aio.UnaryStreamClientInterceptor):
    pass


class _StreamStream(_Adding, aio.StreamStreamClientInterceptor):
    pass


def channel_with(address: str, *metadata: tuple[str, str]) -> aio.Channel:
    """A channel that sends this metadata with each call."""
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    adding = [kind(metadata) for kind in (_UnaryUnary, _UnaryStream, _StreamStream)]
    return grpc.aio.insecure_channel(address, options=options, interceptors=adding)


def channel_of(address: str, name: str) -> aio.Channel:
    """A channel that sends the API key of a name."""
    return channel_with(address, ("authorization", f"Bearer {key(name)}"))
