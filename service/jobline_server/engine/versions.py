"""Versions of workers, compared part by part.

Parts are separated by `.`, `-` or `_`; a leading `v` and what follows `+` do not count. Two numbers
are compared as numbers, two texts letter by letter, and a text is older than a number: so 1.10 is
newer than 1.9, and 2.0-rc1 is older than 2.0. A part that is missing is 0.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest

_SEPARATORS = re.compile("[.\\-_]")
_Part = tuple[bool, int, str]
_ZERO: _Part = (True, 0, "")


@lru_cache(maxsize=4_096)
def is_new_enough(version: str, minimum: str) -> bool:
    """Returns whether a version is `minimum` or newer; no version ("") is older than any."""
    if not version or not minimum:
        return not minimum
    for part, wanted in zip_longest(_parts(version), _parts(minimum), fillvalue=_ZERO):
        if part != wanted:
            return part > wanted
    return True


def _parts(version: str) -> list[_Part]:
    """Returns the parts as values that sort like them."""
    text = version.partition("+")[0]
    if text[:1] in ("v", "V") and text[1:2].isdecimal():
        text = text[1:]
    return [_part(part) for part in _SEPARATORS.split(text)]


def _part(text: str) -> _Part:
    if not text:
        return _ZERO
    return (True, int(text), "") if text.isdecimal() else (False, 0, text)
