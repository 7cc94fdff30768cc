"""How the waits of one client share calls. Pure: no clock, no thread, no loop, no wire.

A call of `Wait` is opened with its jobs and stays open until they have ended, so it cannot be added
to. A wait that comes alone opens one at once; those that come together, or while several are open,
gather for a moment and share the next. When many are open, the next one takes over the jobs of the
smallest, so a client has some dozens of calls open, however many waits it has.
"""
