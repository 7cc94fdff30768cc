"""The runtime: the one loop around the engine.

It owns the shards, reads the clocks, has what was decided committed before anybody hears of it,
and brings jobs and workers together. Callers use the fields of `Runtime`; the order of a commit
stands in `commits`, the steps of a decision in `core`.

It does not know how a call arrived, what a row looks like, or which store it writes to.
"""
