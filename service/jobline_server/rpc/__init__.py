"""The rpc room: what stands between a socket and the runtime.

Each call takes the same way: the guard decodes it, `validate` looks at every field it takes,
`convert` makes a command of it, a servicer asks the runtime, `convert` makes a message of the
answer, the guard encodes it and counts. A refusal anywhere on the way becomes a status by the one
table in `errors`.

Nothing here knows storage, and no rule about jobs stands here: what a field may hold does, and what
becomes of a job does not.
"""
