"""Identifiers from names that may hold anything."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9]+")


# Identifiers that some language has already.
_RESERVED = frozenset(
    {
        "any",
        "array",
        "handlers",
        "jobtype",
        "literal",
        "notrequired",
        "object",
        "record",
        "string",
        "typeddict",
    }
)


class Names:
    """Gives each thing an identifier of its own."""

    def __init__(self) -> None:
        self._taken = set(_RESERVED)

    def free(self, wanted: str, suffixes: tuple[str, ...] = ("",)) -> str:
        """Returns the wanted identifier, or one with a number behind it if that is taken, with any
        of the suffixes. Those that differ in case alone count as the same.
        """
        found, number = wanted, 2
        while self._taken.intersection(f"{found}{suffix}".lower() for suffix in suffixes):
            found, number = f"{wanted}{number}", number + 1
        self._taken.update(f"{found}{suffix}".lower() for suffix in suffixes)
        return found


def camel(*texts: str) -> str:
    """Returns `MailSend` for "mail" and "send": an identifier in every language."""
    words = [word for text in texts for word in _WORD.findall(text)]
    found = "".join(word[0].upper() + word[1:] for word in words)
    return found if found[:1].isalpha() else f"X{found}"


def lower_camel(name: str) -> str:
    """Returns `mailSend` for `MailSend`."""
    return name[0].lower() + name[1:]


def snake(name: str) -> str:
    """Returns `mail_send` for `MailSend`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def in_one_line(text: str) -> str:
    """Returns a text that may stand in a comment of one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text).replace("*/", "* /")
