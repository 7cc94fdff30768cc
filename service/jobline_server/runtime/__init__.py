"""The runtime: the one loop around the engine.

It owns the shards, reads the clocks, commits each decision before anyone is notified of it, and
dispatches jobs to workers. Callers use the fields of `Runtime`. The order of a commit is in
`commits`, the steps of a decision in `core`.

It does not know how a call arrived, what a row looks like, or which store it writes to.
"""
