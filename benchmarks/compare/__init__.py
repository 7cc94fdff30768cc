"""This tree held against another commit, in one run: `make bench-compare REF=v0`.

    python -m benchmarks.compare v0                  every row, about a quarter of an hour
    python -m benchmarks.compare v0 --only P1,P5     some of them

The idea: figures of two runs, or of two drivers, are not comparable, so the load is always this
tree's, and both servers run at the same time, each from an environment of its own. They are
measured in pairs, one right after the other, AB BA AB, and only the ratio within a pair counts.
Rates that wait for the disk differ by a fifth from one second to the next, so each row also counts
the processor time that the server used per job or call. A row is judged by whichever of the two
repeats better, and by the rate or time in any case, because that is what users feel. A row that
seems to differ is measured again with fresh servers, and differs only if it does so both times.

    __main__       the command line, the run, the exit code
    trees          another commit: its files, its environment, the flags its server knows
    rows           what is measured: one row per figure; pushes, handouts, stored, clients
    client_load    the loads of P4 and P6, run with the client of each tree
    pairs          one row measured on both sides in turns
    verdict        ratios, spread and verdict: pure arithmetic
    table          what is shown

It deliberately knows nothing of floors and targets: those are what `python -m benchmarks` is for.
"""
