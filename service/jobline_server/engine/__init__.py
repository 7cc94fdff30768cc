"""The engine: what a job queue means, as a state machine that neither waits nor looks at a clock.

A `Shard` holds a set of queues. A verb in `decide/` reads it, emits facts (`entries`) and returns
an outcome; `apply/` alone gives facts effect, for one just emitted as for one that recovery reads
back. Time is an argument.

It does not know the disk, the wire, the loop, chance, or who is asking; it imports the standard
library and itself.
"""
