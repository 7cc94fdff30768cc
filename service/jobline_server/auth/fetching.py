"""Fetches key sets by httpx, which is imported with the first one."""

from __future__ import annotations

from jobline_server.auth.key_sets import KEY_SET_BYTES_MAX, WrongKeySet

CONNECT_SECONDS = 3.0
HTTP_OK = 200


async def fetch(url: str) -> bytes:
    """Returns what is at a URL. Follows no redirect, and uses no proxy: neither is in the file."""
    import httpx  # noqa: PLC0415  # a tenth of a second, for servers that need it

    async with (
        httpx.AsyncClient(trust_env=False, timeout=CONNECT_SECONDS) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as response,
    ):
        if response.status_code != HTTP_OK:
            raise WrongKeySet(f"the answer is {response.status_code}")
        text = b""
        async for piece in response.aiter_bytes():
            text += piece
            if len(text) > KEY_SET_BYTES_MAX:
                raise WrongKeySet(f"has more than {KEY_SET_BYTES_MAX >> 10} KiB")
        return text
