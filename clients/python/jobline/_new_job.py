"""One job of `push_many`, and its key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Unpack

from jobline._arguments import ids_given, text_given
from jobline._keywords import spelled_out
from jobline._options import JobOptions, OptionsHow, with_keywords
from jobline._times import Seconds
from jobline.errors import ErrorFacts, InvalidArgument


def key_of(key: str | None, field: str = "job_key") -> str:
    """Returns a key as it is sent, "" for none. Raises InvalidArgument for an empty one: its caller
    relies on a key, and would get a job without one.
    """
    if key is None:
        return ""
    if not text_given(field, key):
        facts = ErrorFacts(fields={field: "is empty"})
        raise InvalidArgument(f"{field}: is empty; give None for a job without a key", facts)
    return key


def unique_key_of(unique_key: str | None) -> str:
    """Returns a unique key as it is sent, "" for none. Raises InvalidArgument for an empty one."""
    return key_of(unique_key, "unique_key")


@dataclass(frozen=True, slots=True, init=False)
class NewJob:
    """One job of `push_many`, with options of its own.

    All is as for `push`; `name` and the fields of `JobOptions` go before those that all share.
    `depends_on_indexes`: the earlier jobs of the same call that must complete first.
    """

    payload: Any
    options: JobOptions | None
    job_key: str | None
    delay: Seconds | None
    run_at: datetime | None
    unique_key: str | None
    depends_on_indexes: tuple[int, ...]

    @spelled_out(OptionsHow)
    def __init__(  # noqa: PLR0913  # one keyword for each option of a job
        self,
        payload: Any = b"",
        *,
        options: JobOptions | None = None,
        name: str | None = None,
        job_key: str | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        unique_key: str | None = None,
        depends_on_indexes: Iterable[int] = (),
        **more: Unpack[OptionsHow],
    ) -> None:
        own = with_keywords(options, more, "NewJob", name)
        indexes = ids_given("depends_on_indexes", depends_on_indexes)
        values = (payload, own, job_key, delay, run_at, unique_key, indexes)
        for field_, value in zip(_OF_NEW_JOBS, values, strict=True):
            object.__setattr__(self, field_, value)


_OF_NEW_JOBS = tuple(entry.name for entry in fields(NewJob))
