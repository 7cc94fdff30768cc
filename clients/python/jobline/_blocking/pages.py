# Generated from jobline/_asynchronous/pages.py by `make gen`: change that file instead.
"""Lists, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Page = TypeVar("Page")


def pages_of(fetch: Callable[[str], Page]) -> Iterator[Page]:
    """Yields all pages of a list: `fetch` gets the token of the page; the last page has no next
    one.
    """
    token = ""
    while True:
        page: Any = fetch(token)
        yield page
        token = page.next_page_token
        if not token:
            return
