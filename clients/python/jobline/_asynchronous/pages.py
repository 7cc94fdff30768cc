"""Lists, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from jobline._asynchronous.connection import Connection

Page = TypeVar("Page")

Link = Callable[[], Connection]
"""Gives the client's connection, which is made at its first use inside the event loop."""


async def pages_of(fetch: Callable[[str], Awaitable[Page]]) -> AsyncIterator[Page]:
    """All pages of a list: `fetch` gets the token of the page; the last page has no next one."""
    token = ""
    while True:
        page: Any = await fetch(token)
        yield page
        token = page.next_page_token
        if not token:
            return
