"""Answers after a commit: everybody who still waits gets one, and nobody twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.commits import replies


def a_caller() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def test_callers_get_their_answers_and_those_who_went_are_passed_over() -> None:
    """A caller that was cancelled meanwhile spoils nothing."""
    waits, gone = a_caller(), a_caller()
    gone.cancel()
    replies.give([(gone, 1), (waits, 2)])
    assert await waits == 2


async def test_callers_of_a_commit_that_failed_hear_that_nobody_knows() -> None:
    """Neither that it is stored nor that it is not."""
    waits, gone = a_caller(), a_caller()
    gone.cancel()
    replies.give_up([(gone, 1), (waits, 2)])
    with pytest.raises(Refused) as refused:
        await waits
    assert refused.value.kind is RefusalKind.STORAGE_FAILED
