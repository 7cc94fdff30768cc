"""Benchmarks: what Jobline promises about speed, measured on this machine, in one run.

    python -m benchmarks                    everything, half an hour
    python -m benchmarks --quick            shorter and rougher, at most 90 seconds
    python -m benchmarks --only P1,P5       some of it
    python -m benchmarks --write            everything, kept in docs/benchmarks.md
    python -m benchmarks --profile P1       where the server's time goes meanwhile

The idea: absolute figures say as much about the machine as about the program, so each figure
stands beside its floor from the same run, a server with the same transport and an empty handler.
The real server runs as its users run it, a process of its own with its files on a disk and
`synchronous=FULL`, pinned to one core; the load has the other. Every load is counted afterwards by
asking the server: a benchmark that measured nothing fails.

    __main__       which benchmarks, and what is done with their figures
    bench          one run: servers, floors, repeats, figures
    pushing, draining, latency, clients, sizes, growth, idle, exported, overload,
    encrypted
                   the benchmarks, one function a target
    processes      a server as a process: start, memory, time of the processor, end
    empty          the server with an empty handler
    h2load, open_loop, wire, drains
                   the loads: calls from C, calls at a rate of their own, calls and streams of
                   prepared bytes from Python
    bodies         the prepared bytes
    figures, report, machine
                   what was measured, how it is shown, and where
    profiling      where the server's time goes

It deliberately knows nothing of the server's insides: all goes through its port.
"""

import os

# Before grpc is imported: h2load is started as a process, and nothing of gRPC lives on in it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# Servers find their bytecode, as installed ones do: where it is not kept, half of the time of a
# start would be the compiler's.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
