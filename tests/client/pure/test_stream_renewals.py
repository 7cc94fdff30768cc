"""A worker whose token has ended asks for another a few times, however often it tried before."""

from __future__ import annotations

from typing import Any

import pytest

from jobline._identity import Identity
from jobline._worker.stream import RENEWALS_MAX, TOKEN_EXPIRED, Address, Stream
from jobline.errors import ErrorFacts, JoblineError, Unauthenticated, Unavailable


class OpenSession:
    """A session that is never over."""

    is_over = False


def expired() -> JoblineError:
    return Unauthenticated("the token has ended", ErrorFacts(reason=TOKEN_EXPIRED))


def down() -> JoblineError:
    return Unavailable("connection refused")


def run(
    monkeypatch: pytest.MonkeyPatch, *calls: JoblineError, token: Any = lambda: "t"
) -> tuple[int, JoblineError | None]:
    """Returns how many streams were tried, and what ended the worker, if anything did."""
    left, ended = list(calls), list[JoblineError | None]()
    stream = Stream(
        Address("server:1", Identity(token=token)),
        OpenSession(),  # type: ignore[arg-type]  # what the thread asks it between streams
        lambda _: None,
        ended.append,
        None,  # type: ignore[arg-type]  # pauses write to it
    )

    def one_call() -> JoblineError:
        if len(left) == 1:
            stream._stopping.set()
        return left.pop(0)

    monkeypatch.setattr(stream, "_one_call", one_call)
    monkeypatch.setattr(stream, "_pause", lambda *_: None)
    stream._run()
    return len(calls) - len(left), ended[0]


def test_a_server_that_was_down_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [down() for _ in range(2 * RENEWALS_MAX)]
    assert run(monkeypatch, *before, expired(), down()) == (len(before) + 2, None)


def test_each_renewal_has_its_own_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [expired() for _ in range(RENEWALS_MAX - 1)]
    assert run(monkeypatch, *some, down(), *some, down()) == (2 * RENEWALS_MAX, None)


def test_a_token_that_has_ended_again_and_again_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried, error = run(monkeypatch, down(), *[expired() for _ in range(RENEWALS_MAX + 1)])
    assert tried == 1 + RENEWALS_MAX
    assert isinstance(error, Unauthenticated)


def test_a_token_that_is_text_is_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, error = run(monkeypatch, expired(), down(), token="t")
    assert (tried, isinstance(error, Unauthenticated)) == (1, True)
