"""Pushes with unique keys, as a rule of the recovery machine."""

from __future__ import annotations

from contextlib import suppress
from zlib import crc32

from hypothesis import strategies as st
from hypothesis.stateful import rule

from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.update import decide_forget_unique_key
from jobline_server.engine.payloads import NO_PAYLOADS
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import JobOptions
from tests.pushed_rows import NewJob, rows_of
from tests.storage.checkpointing import PAYLOADS
from tests.storage.recovery_commands import CommandRules
from tests.storage.recovery_values import OPTIONS, delays, levels, queues, request_ids

UNIQUE = tuple(
    JobOptions(rules=JobRules(unique=rule))
    for rule in [*map(UniqueRule, UniqueMode), *(UniqueRule(mode, 20_000) for mode in UniqueMode)]
)
keys = st.sampled_from(["u1", "u2"])
ties = st.builds(Ties, st.sampled_from(["", "", "g"]), keys)
unique_jobs = st.lists(
    st.tuples(st.sampled_from(UNIQUE), st.sampled_from(["", "k1"]), delays, ties),
    min_size=1,
    max_size=3,
)


class UniqueKeyRules(CommandRules):
    """Producers whose jobs have unique keys."""

    @rule(
        queue=queues,
        jobs=unique_jobs,
        level=levels,
        request_id=request_ids,
        atomic=st.booleans(),
    )
    def push_unique(self, queue, jobs, level, request_id, atomic):
        now_ms = self.now.wall_ms
        rows = rows_of(
            NewJob(
                PAYLOADS[key],
                own,
                key,
                now_ms + delay if delay else 0,
                None,
                tied,
            )
            for own, key, delay, tied in jobs
        )
        # What is stored says which rows were: another call with this id is another request.
        digest = crc32(repr(jobs).encode())
        self._push(Push(queue, OPTIONS[0], rows, NO_PAYLOADS, 0, level, atomic, request_id, digest))

    @rule(queue=queues, key=keys)
    def forget_unique_key(self, queue, key):
        with suppress(Refused):
            decide_forget_unique_key(self.shard, self.now, queue, key)
