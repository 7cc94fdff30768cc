"""Invariants of messages between shards; `invariants` lists them with the others."""

from __future__ import annotations

from jobline_server.engine.shard import Shard


def outboxes_add_up(shard: Shard) -> str:
    """G19: each message is in one outbox, in the order of numbers, and counted in the load."""
    jobs = payload_bytes = messages = 0
    for to_shard, outbox in shard.messages.outboxes.items():
        numbers = [sent.number for sent in outbox]
        if not numbers or numbers != sorted(set(numbers)):
            return f"messages to shard {to_shard} wait as {numbers}"
        for sent in outbox:
            if sent.to_shard != to_shard or shard.messages.waiting.find(sent.key) is not sent:
                return f"message {sent.number} to shard {to_shard} is not found by its key"
            jobs += sent.message.jobs()
            payload_bytes += sent.message.payload_bytes()
        messages += len(numbers)
    if messages != len(shard.messages.waiting):
        return f"{len(shard.messages.waiting)} messages wait, {messages} of them in an outbox"
    counted = shard.load.outgoing_jobs, shard.load.outgoing_bytes
    if counted != (jobs, payload_bytes):
        return f"load says {counted} jobs and bytes to other shards of {(jobs, payload_bytes)}"
    return ""
