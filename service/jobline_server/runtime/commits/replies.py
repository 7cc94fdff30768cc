"""Answers that wait for a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.slots import Answer


def storage_failed() -> Refused:
    """What a call is told whose outcome nobody knows."""
    return Refused(
        RefusalKind.STORAGE_FAILED, "the disk failed while this was written; the server stops"
    )


def give(answers: Iterable[Answer]) -> None:
    """Tells callers what they waited for; some have gone."""
    for future, answer in answers:
        if not future.done():
            future.set_result(answer)


def give_up(answers: Iterable[Answer], refusal: Callable[[], Refused] = storage_failed) -> None:
    """Tells callers that nobody knows, or what else the `refusal` says; each gets its own."""
    for future, _ in answers:
        if not future.done():
            future.set_exception(refusal())
