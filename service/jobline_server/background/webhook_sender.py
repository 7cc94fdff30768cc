"""Sends one message to a URL, by httpx, which is imported with the first one.

The name of the host is resolved here, its addresses are checked, and the connection goes to the
address that was checked: a name that means something else a moment later changes nothing. Each
message has a connection of its own, as one that is kept would be another host's with the same
address. Nothing of the body of an answer is read, and no proxy and no redirect is followed. Only
the transport of httpx is used: its client would keep the cookies of all receivers, for all of them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from jobline_server.background.webhook_addresses import Forbidden, check_name, choose
from jobline_server.background.webhook_names import Lookups, TooManyLookups
from jobline_server.background.webhook_outcomes import Answer
from jobline_server.wire.webhook_urls import Target, target_of

if TYPE_CHECKING:
    import httpx

# All of a try: resolving, connecting, sending, and the head of the answer.
TRY_SECONDS = 15.0
# An error as it is kept.
ERROR_CHARACTERS_MAX = 200
# `Retry-After` in seconds has so many digits at most.
DIGITS_MAX = 9

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Sender:
    """Sends messages. `allow_private`: also to private networks, and to this host. `context`: with
    the authorities that certificates are checked by; those of the system if it is not given.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        user_agent: str = "jobline",
        resolver: Resolve | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._user_agent = user_agent
        self._resolve = resolver or Lookups().resolve
        self._context = context
        self._transport: httpx.AsyncHTTPTransport | None = None
        self._opening = asyncio.Lock()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, now_ms: int) -> Answer:
        """Returns what the receiver answers; any failure is an answer, too."""
        try:
            async with asyncio.timeout(TRY_SECONDS):
                return await self._send(url, headers, body, now_ms)
        except TimeoutError:
            return Answer(error=f"no answer within {TRY_SECONDS:g} s")
        except Forbidden as forbidden:
            return Answer(error=str(forbidden)[:ERROR_CHARACTERS_MAX], is_forbidden=True)
        except TooManyLookups as error:
            return Answer(error=str(error), is_unasked=True)
        except Exception as error:  # noqa: BLE001  # whatever a receiver does is its failure
            text = f"{type(error).__name__}: {error}"
            return Answer(error=text[:ERROR_CHARACTERS_MAX])

    async def close(self) -> None:
        """Closes what is open; twice does nothing."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _send(self, url: str, headers: Mapping[str, str], body: bytes, now_ms: int) -> Answer:
        target = target_of(url)
        check_name(target.host)
        addresses = await self._resolve(target.host, target.port)
        address = choose(target.host, addresses, allow_private=self._allow_private)
        transport = await self._opened()
        response = await transport.handle_async_request(
            self._request(target, address, headers, body)
        )
        try:
            after = response.headers.get("retry-after", "")
            return Answer(response.status_code, retry_after_ms=_retry_after_ms(after, now_ms))
        finally:
            await response.aclose()

    def _request(
        self, target: Target, address: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Request:
        import httpx  # noqa: PLC0415  # see `_new_transport`

        shown = f"[{address}]" if ":" in address else address
        return httpx.Request(
            "POST",
            f"{target.scheme}://{shown}:{target.port}{target.path}",
            headers={
                **headers,
                "host": target.authority,
                "user-agent": self._user_agent,
                "accept": "*/*",
                "connection": "close",
            },
            content=body,
            extensions={
                # The certificate must be that of the name, not of the address.
                "sni_hostname": target.host,
                "timeout": httpx.Timeout(TRY_SECONDS).as_dict(),
            },
        )

    async def _opened(self) -> httpx.AsyncHTTPTransport:
        async with self._opening:
            if self._transport is None:
                # The import, and reading the certificates of all authorities, take half a second.
                self._transport = await asyncio.to_thread(_new_transport, self._context)
            return self._transport


def _new_transport(context: ssl.SSLContext | None) -> httpx.AsyncHTTPTransport:
    import httpx  # noqa: PLC0415  # no server without webhooks pays for it

    return httpx.AsyncHTTPTransport(
        verify=context or _new_context(),
        trust_env=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
    )


def _new_context() -> ssl.SSLContext:
    import certifi  # noqa: PLC0415  # as httpx

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        # A system without authorities of its own, such as a small container.
        context.load_verify_locations(certifi.where())
    return context


def _retry_after_ms(value: str, now_ms: int) -> int | None:
    """Returns how long to wait, by the header `Retry-After`: seconds, or a date."""
    value = value.strip()
    if value.isascii() and value.isdecimal() and len(value) <= DIGITS_MAX:
        return int(value) * 1_000
    try:
        return max(round(parsedate_to_datetime(value).timestamp() * 1_000) - now_ms, 0)
    except (ValueError, OverflowError):
        return None
