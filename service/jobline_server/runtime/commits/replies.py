"""Answers that wait for a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.slots import Answer


def storage_failed() -> Refused:
    """Returns the refusal of a call whose outcome is unknown."""
    return Refused(
        RefusalKind.STORAGE_FAILED, "the disk failed while this was written; the server stops"
    )


def give(answers: Iterable[Answer]) -> None:
    """Gives callers their answers; some may have gone."""
    for future, answer in answers:
        if not future.done():
            future.set_result(answer)


def give_up(answers: Iterable[Answer], refusal: Callable[[], Refused] = storage_failed) -> None:
    """Refuses callers, with STORAGE_FAILED or with what `refusal` makes for each."""
    for future, _ in answers:
        if not future.done():
            future.set_exception(refusal())
