"""Lists, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

Page = TypeVar("Page")


async def pages_of(fetch: Callable[[str], Awaitable[Page]]) -> AsyncIterator[Page]:
    """Yields all pages of a list: `fetch` gets the token of the page; the last page has no next
    one.
    """
    token = ""
    while True:
        page: Any = await fetch(token)
        yield page
        token = page.next_page_token
        if not token:
            return
