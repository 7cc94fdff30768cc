"""Facts of messages between shards (`shard_messages`). `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.shard_messages import ShardMessage


@dataclass(slots=True)
class MessagesSent:
    """Messages to another shard were put into its outbox, numbered from `first_number` on."""

    at_ms: int
    to_shard: int
    first_number: int
    messages: list[ShardMessage]


@dataclass(slots=True)
class MessagesReceived:
    """Messages of another shard up to this number were applied; their effects are facts of the same
    commit.
    """

    at_ms: int
    from_shard: int
    up_to: int


@dataclass(slots=True)
class MessagesAcknowledged:
    """Another shard has applied the messages up to this number, which are removed."""

    at_ms: int
    to_shard: int
    up_to: int


MessageFact = MessagesSent | MessagesReceived | MessagesAcknowledged
