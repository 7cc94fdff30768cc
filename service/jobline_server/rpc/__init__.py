"""Rpc: everything between a socket and the runtime.

Each call takes the same path: the guard decodes it, `validate` checks every field, `convert` makes
a command of it, a servicer calls the runtime, `convert` makes a message of the outcome, the guard
encodes and counts it. A refusal anywhere on the way becomes a status by the table in `errors`.

Nothing here knows storage, and no rule about jobs is here: `rpc` knows which values a field may
have, and the engine what becomes of a job.
"""
