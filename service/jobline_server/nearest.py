"""Names that were meant, perhaps."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

# To compare one of megabytes takes a second, and it is near to none.
NAME_CHARACTERS_MAX = 200


def nearest(name: str, known: Collection[str], *, prefix: str = "") -> str:
    """Returns the known name closest to an unknown one, as the end of a sentence, or "". A `prefix`
    of all names is not compared.
    """
    if len(name) > NAME_CHARACTERS_MAX:
        return ""
    names = [known_name[len(prefix) :] for known_name in known]
    near = get_close_matches(name.removeprefix(prefix), names, n=1)
    return f" (did you mean {prefix}{near[0]}?)" if near else ""
