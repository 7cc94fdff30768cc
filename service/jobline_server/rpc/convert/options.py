"""Caches options by their bytes: checked once, made once, shared by all jobs that have them.

Jobs of one kind come with the same options again and again. The table finds their `JobOptions`
object by the bytes of the message, so options cost one dictionary look-up and one reference a job.
Ties stand among the options of a message, but each job has its own: only what is left without them
is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from jobline.v1 import job_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.rpc.convert.ties import merged, take_ties
from jobline_server.rpc.validate.fields import at_most, within
from jobline_server.rpc.validate.options import check_headers, check_job_options, has_formula
from jobline_server.wire.options import fields_given, options_from_message

ENTRIES_MAX = 16_384
# Larger options (long headers, mostly) are not cached, as the cache would keep a copy of the bytes.
KEPT_BYTES_MAX = 2_048


class SharedOptions(NamedTuple):
    """The options and ties that the jobs of a push share; `base` are the bytes of the options."""

    options: JobOptions
    ties: Ties
    base: bytes


class Overridden(NamedTuple):
    """The options of jobs, their ties (none at all if no job has any), whether any has rules."""

    options: list[JobOptions]
    ties: list[Ties]
    has_rules: bool


def merged_options(base: bytes, override: bytes) -> job_pb2.JobOptions:
    """Returns the shared options of a push, overridden by those of a job. A list of pauses replaces
    what says how they grow, and the other way round; phases replace others.
    """
    message = job_pb2.JobOptions.FromString(base)
    job = job_pb2.JobOptions.FromString(override)
    own = job.backoff
    if job.phases:
        message.ClearField("phases")
    if own.delays:
        for name in ("kind", "base", "max_delay", "delays"):
            message.backoff.ClearField(name)
    elif has_formula(own):
        message.backoff.ClearField("delays")
    message.MergeFromString(override)
    return message


class OptionsTable:
    """The options of recently pushed jobs. At its limit the table drops all entries: an object that
    is made twice costs memory and nothing else.
    """

    __slots__ = ("_by_base", "_by_value", "_count")

    def __init__(self) -> None:
        self._count = 0
        self._by_base: dict[bytes, dict[bytes, JobOptions]] = {}
        self._by_value: dict[JobOptions, JobOptions] = {}
        self._clear()

    def __len__(self) -> int:
        return self._count

    def shared(self, base: bytes) -> SharedOptions:
        """Returns what a push shares, by the bytes of its options."""
        family = self._by_base.get(base)
        found = family.get(b"") if family is not None else None
        if found is not None:
            return SharedOptions(found, NO_TIES, base)
        try:
            message = job_pb2.JobOptions.FromString(base)
            given = check_job_options(message)
        except Refused as refused:
            raise within("options", refused) from None
        ties = take_ties(message, given)
        if ties is not NO_TIES:
            return self.shared(message.SerializeToString())._replace(ties=ties)
        made = options_from_message(message, given)
        return SharedOptions(self._keep(base, b"", made), NO_TIES, base)

    def overridden(self, shared: SharedOptions, overrides: Sequence[bytes]) -> Overridden:
        """Returns the options of jobs that override fields of the shared options of their push, and
        their ties.
        """
        find = self._by_base.get(shared.base, {}).get
        # Many jobs have few overrides, so each one is looked up once.
        made = {override: find(override) for override in dict.fromkeys(overrides)}
        own_ties: dict[bytes, Ties] = {}
        for override, options in made.items():
            if options is None:
                try:
                    made[override], ties = self._make(shared.base, override)
                except Refused as refused:
                    index = overrides.index(override)
                    raise within(f"jobs[{index}].options", refused) from None
                if ties is not NO_TIES:
                    own_ties[override] = merged(shared.ties, ties)
        found = cast("dict[bytes, JobOptions]", made)
        of_jobs: list[Ties] = []
        if own_ties:
            of_jobs = [own_ties.get(override, shared.ties) for override in overrides]
        elif shared.ties is not NO_TIES:
            of_jobs = [shared.ties] * len(overrides)
        has_rules = any(options.rules is not NO_RULES for options in found.values())
        return Overridden([found[override] for override in overrides], of_jobs, has_rules)

    def _make(self, base: bytes, override: bytes) -> tuple[JobOptions, Ties]:
        message = job_pb2.JobOptions.FromString(override or base)
        given = check_job_options(message)
        ties = take_ties(message, given)
        if ties is not NO_TIES:
            override = message.SerializeToString()
        # A job before it in the same push may have the same options, with ties of its own.
        known = self._by_base.get(base, {}).get(override)
        if known is not None:
            return known, ties
        if base and override:
            message = merged_options(base, override)
            given = fields_given(message)
            check_headers(message.headers, "headers")
            at_most(set(message.tags), "tags", limits.TAGS_MAX)
            at_most(set(message.limiters), "limiters", limits.LIMITERS_PER_JOB_MAX)
        return self._keep(base, override, options_from_message(message, given)), ties

    def _keep(self, base: bytes, override: bytes, made: JobOptions) -> JobOptions:
        if len(base) + len(override) > KEPT_BYTES_MAX:
            return made
        if self._count >= ENTRIES_MAX:
            self._clear()
        # Equal headers may be serialised in different orders; the value finds the same object.
        shared = self._by_value.setdefault(made, made) if len(made.headers) > 1 else made
        self._by_base.setdefault(base, {})[override] = shared
        self._count += 1
        return shared

    def _clear(self) -> None:
        self._count = 0
        self._by_base = {b"": {b"": DEFAULT_OPTIONS}}
        self._by_value = {}
