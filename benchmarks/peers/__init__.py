"""Peers: other job queues and Jobline, measured alike on this machine, in one run.

    make bench-peers                                    everything, about ten minutes
    python -m benchmarks.peers --only nats,river        some of it
    python -m benchmarks.peers --quick                  a few seconds a row, and rough
    python -m benchmarks.peers --write                  everything, kept in docs/benchmarks.md

The idea: each peer does the same four things through the client that its users have, with the
server on one core and the load on the other: pushes of many jobs a call, pushes of one job by 64
callers, the same by one caller, and a worker that drains a queue. A row is a peer at one
durability: the state of a push when it was answered. What the configuration promises is not
believed: a row's server is also run under strace, which counts the syncs of 200 single pushes.
What was pushed or drained is counted by asking the server; a load that did something else fails.

    __main__     which rows, and what is done with them
    peer         what a peer is: how it is built, served and loaded
    jobline, nats, river, redis, beanstalkd, bunqueue
                 the peers
    building     brings programs by `scripts/peers_tools.sh`
    serving      servers as groups of processes, which end whatever happens
    measuring    the loads of one row
    syncs        what strace saw
    results      rows that are kept, so that a run that was interrupted goes on
    table        the table of docs/benchmarks.md
    go, node     the loads, as programs: they print a line of JSON
    python_load  the same for the Python client of Jobline
"""
