"""Groups of commands: they say where an option belongs that was written before its command, and
name wrong values without words of the library that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

# What pydantic, in typer, writes in messages, and what a person reads.
_WORDS = (("Value error, ", ""), ("Input should be", "must be"))
_WHY = ", unable to parse"


class Nouns(TyperGroup):
    """A group of commands. What the base class handles is of click, or of the one in typer, by its
    version: so errors are known by their attributes.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the group's own options, which are few."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            hint = _hint(self, ctx.command_path, given, option) if option else ""
            if hint:
                error.message = f"No such option: {option}. {hint}"  # type: ignore[attr-defined]  # click's
                error.possibilities = []  # type: ignore[attr-defined]  # as above
            raise

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = getattr(error, "message", None)
            if hasattr(error, "format_message") and isinstance(message, str):
                error.message = _plain(message)  # type: ignore[attr-defined]  # as above
            raise


def give_hints(app: typer.Typer) -> None:
    """Has all groups of an app be `Nouns`."""
    app.info.cls = Nouns
    for group in app.registered_groups:
        if group.typer_instance is not None:
            give_hints(group.typer_instance)


def _plain(message: str) -> str:
    for found, word in _WORDS:
        message = message.replace(found, word)
    return message.partition(_WHY)[0]


def _hint(group: TyperGroup, path: str, given: Sequence[str], option: str) -> str:
    """Returns where an option belongs that the group does not have; "" if no command has it."""
    # A value of the option may have the name of a command: `--kind dead tail`.
    for begin in range(len(given) + 1):
        found: Any = group
        words = [path]
        for word in given[begin:]:
            below = getattr(found, "commands", {})
            if word in below:
                found = below[word]
                words.append(word)
        shown = _shown_option(found, option)
        if shown and (found is not group or begin == len(given)):
            words += ["COMMAND"] if hasattr(found, "commands") else []
            return f"It belongs after the command: {' '.join(words)} {shown}"
    return ""


def _shown_option(command: Any, option: str) -> str:
    """Returns an option as it is written, if this command, or one below it, has it; else ""."""
    for parameter in command.params:
        if option in parameter.opts:
            metavar = "" if parameter.is_flag else parameter.metavar or "VALUE"
            return f"{option} {metavar}".strip()
    below = getattr(command, "commands", {}).values()
    return next(filter(None, (_shown_option(one, option) for one in below)), "")
