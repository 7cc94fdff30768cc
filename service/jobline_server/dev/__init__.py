"""For tests and for small programs: servers in memory, servers within a process, and time that is
moved by hand. Nothing is faked here: engine, store and wire are those of `jobline serve`.
"""
