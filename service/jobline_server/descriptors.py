"""Raises the limit on descriptors of the process. The usual soft limit, 1,024, is for programs that
call select(2), which this one does not: a program that can do with more asks for it itself
(https://0pointer.net/blog/file-descriptor-limits.html).
"""

from __future__ import annotations

import resource

# Those of a connection by TLS of the native transport; any other has one.
EACH_MAX = 3
# What a server has open beside connections: files of the store, sockets, pipes; twice as many as
# are enough.
OTHERS = 1_024


def raise_limit(connections: int) -> int:
    """Raises the soft limit so that there may be so many connections, as far as the hard limit
    allows it; never lowers it. Returns the soft limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = EACH_MAX * connections + OTHERS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
