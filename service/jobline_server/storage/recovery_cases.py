"""Recovery as a table: what a store may find when it opens a shard, and what is decided then.

Each case has a number, a condition, a decision and a test of that number. The decision is to go on
if nothing that was acknowledged is missing, and to refuse otherwise. An operator can accept the
loss: opening with `accept_loss` goes on with everything before the break in the journal, and sets
the rest apart.

This module has the cases, and `journal_check` finds the one of a journal. Neither reads a file; a
store passes them the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from jobline_server.storage.store import ShardRow


class Decision(Enum):
    """What is done in a case."""

    GO_ON = "go on"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """One row of the table."""

    number: int
    name: str
    condition: str
    decision: Decision
    because: str

    def __str__(self) -> str:
        return f"recovery case {self.number}, {self.name}: {self.condition}"


_GO_ON, _REFUSE = Decision.GO_ON, Decision.REFUSE

WHOLE = RecoveryCase(
    1,
    "whole",
    "rows continue from the checkpoint to the offset and chain of the shard row",
    _GO_ON,
    "this is a journal as it should be",
)
NOTHING_TO_REPLAY = RecoveryCase(
    2,
    "nothing to replay",
    "no row follows the checkpoint, and the shard row stands at the checkpoint",
    _GO_ON,
    "everything is in the items",
)
BEHIND_THE_CHECKPOINT = RecoveryCase(
    3,
    "behind the checkpoint",
    "rows at or before the checkpoint are still there",
    _GO_ON,
    "truncation comes after the checkpoint, in slices; they are not read and will be deleted",
)
TORN_TAIL = RecoveryCase(
    4,
    "torn tail",
    "the last transaction is incomplete, and the journal has all commits up to the watermark",
    _GO_ON,
    "an incomplete commit was never acknowledged; the store drops it by itself",
)
PROMISED_BUT_MISSING = RecoveryCase(
    5,
    "acknowledged commits missing",
    "the watermark has a later epoch, offset or id ceiling than the shard row",
    _REFUSE,
    "the watermark is written after the fsync, so acknowledged commits are gone",
)
NOT_WHAT_WAS_PROMISED = RecoveryCase(
    6,
    "another journal than acknowledged",
    "the journal has another chain at the offset of the watermark",
    _REFUSE,
    "this is another journal: a restored copy that was used since, or files of two stores mixed",
)
PROMISE_UNREADABLE = RecoveryCase(
    7,
    "watermark unreadable",
    "neither of the two copies in the file `promise` has a good checksum",
    _REFUSE,
    "a crash tears one copy at most; without it nobody can tell whether the tail is complete",
)
NOTHING_PROMISED = RecoveryCase(
    8,
    "no watermark",
    "the file `promise` has no watermark of this shard",
    _GO_ON,
    "the shard is new; a store that lost the file is another case",
)
BAD_CHECKSUM = RecoveryCase(
    9,
    "bad checksum",
    "the checksum of a row does not follow from its blob and the row before it",
    _REFUSE,
    "the blob rotted; facts after it may build on facts in it",
)
BROKEN_CHAIN = RecoveryCase(
    10,
    "broken chain",
    "a row does not continue the chain of the row before it, or the shard row that of the last",
    _REFUSE,
    "one of the two is not what was written",
)
GAP = RecoveryCase(
    11,
    "gap",
    "an offset is missing between two rows",
    _REFUSE,
    "facts after the gap may build on facts in it",
)
AHEAD_OF_THE_CHECKPOINT = RecoveryCase(
    12,
    "ahead of the checkpoint",
    "the first row does not follow the checkpoint directly",
    _REFUSE,
    "rows were cut off that no checkpoint holds",
)
SHORT_OF_THE_SHARD_ROW = RecoveryCase(
    13,
    "short of the shard row",
    "the journal ends before the offset of the shard row",
    _REFUSE,
    "row and shard row are written together, so rows were lost since",
)
BEYOND_THE_SHARD_ROW = RecoveryCase(
    14,
    "beyond the shard row",
    "the journal has a row past the offset of the shard row",
    _REFUSE,
    "row and shard row are written together, so the shard row is not what was written",
)
CHECKPOINT_AHEAD = RecoveryCase(
    15,
    "checkpoint ahead of the journal",
    "the checkpoint's offset is past the shard row's",
    _REFUSE,
    "a checkpoint holds committed facts only, so commits are gone",
)
STRAY_EPOCH = RecoveryCase(
    16,
    "stray epoch",
    "a row's epoch is below that of the row before it, or above the shard row's",
    _REFUSE,
    "epochs only grow, and the fence lets through none but the shard row's",
)

CHECKPOINT_UNREADABLE = RecoveryCase(
    17,
    "checkpoint unreadable",
    "what the shard row says of its checkpoint has a bad checksum",
    _REFUSE,
    "without it nobody can tell which items are there and where the journal's tail begins",
)

FINISHED_MISSING = RecoveryCase(
    18,
    "finished.db missing",
    "the store had a finished.db, and the one that is there is new",
    _REFUSE,
    "it was deleted or emptied, and jobs that ended are in no other place",
)
FINISHED_OLDER = RecoveryCase(
    19,
    "older finished.db",
    "finished.db was synced less often than when the store took its last checkpoint",
    _REFUSE,
    "it is an older copy; what ended before the checkpoint is in no journal any more",
)
FINISHED_OF_ANOTHER = RecoveryCase(
    20,
    "finished.db of another store",
    "finished.db belongs to another store",
    _REFUSE,
    "files of two stores are mixed, and ids of one may be those of other jobs",
)
FINISHED_UNREADABLE = RecoveryCase(
    21,
    "finished.db unreadable",
    "finished.db is cut, or not a database",
    _REFUSE,
    "jobs that ended are in no other place; accepted, it is kept under another name",
)
PROMISE_MISSING = RecoveryCase(
    22,
    "watermark missing",
    "the store had a file `promise`, and there is none",
    _REFUSE,
    "without it nobody can tell whether acknowledged commits are there",
)

CASES = (
    WHOLE,
    NOTHING_TO_REPLAY,
    BEHIND_THE_CHECKPOINT,
    TORN_TAIL,
    PROMISED_BUT_MISSING,
    NOT_WHAT_WAS_PROMISED,
    PROMISE_UNREADABLE,
    NOTHING_PROMISED,
    BAD_CHECKSUM,
    BROKEN_CHAIN,
    GAP,
    AHEAD_OF_THE_CHECKPOINT,
    SHORT_OF_THE_SHARD_ROW,
    BEYOND_THE_SHARD_ROW,
    CHECKPOINT_AHEAD,
    STRAY_EPOCH,
    CHECKPOINT_UNREADABLE,
    FINISHED_MISSING,
    FINISHED_OLDER,
    FINISHED_OF_ANOTHER,
    FINISHED_UNREADABLE,
    PROMISE_MISSING,
)


@dataclass(frozen=True, slots=True)
class CommitMark:
    """The last acknowledged commit, as a store has it outside of its journal."""

    epoch: int
    offset: int
    chain: int
    id_ceiling: int


class Unreadable(Enum):
    """A mark that exists and cannot be read."""

    UNREADABLE = "unreadable"


def judge_commit_mark(
    shard: ShardRow, promise: CommitMark | Unreadable | None, chain_then: int | None
) -> RecoveryCase:
    """Compares a shard row with the promise, the mark of its last acknowledged commit. `chain_then`
    is the chain at the promised offset, None if that row is gone."""
    if promise is None:
        return NOTHING_PROMISED
    if isinstance(promise, Unreadable):
        return PROMISE_UNREADABLE
    promised = (promise.epoch, promise.offset, promise.id_ceiling)
    there = (shard.epoch, shard.offset, shard.id_ceiling)
    if any(ours > theirs for ours, theirs in zip(promised, there, strict=True)):
        return PROMISED_BUT_MISSING
    if chain_then is not None and chain_then != promise.chain:
        return NOT_WHAT_WAS_PROMISED
    return TORN_TAIL
