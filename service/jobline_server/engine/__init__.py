"""The engine: the rules of the job queue, as a state machine without I/O, waiting or clocks.

A `Shard` holds a set of queues. A verb in `decide/` reads it, emits facts (`entries`) and returns
an outcome. Only `apply/` changes the state, in the same way for a fact just emitted and for one
that recovery reads. Time is an argument.

The engine does not know the disk, the wire, the loop, chance or the caller; it imports only the
standard library and itself.
"""
