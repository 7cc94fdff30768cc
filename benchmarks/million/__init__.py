"""P15: each call of operators, and each list, on a server that holds a million jobs of each kind.

The server is a process of its own that times each step of its loop (`stepping`), and the client is
this one. `worlds` fills it: a million jobs in lots, as many with options of their own, scheduled,
in groups, blocked, completed, dead, expired, and in one batch. `calls` has a row for each RPC and
kind of jobs that it is to meet, in the order in which they are called, because many of them end or
delete what they meet; a test compares the rows with the descriptors. `running` calls them.
"""
