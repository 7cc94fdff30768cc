"""`make soak MINUTES=10`: everything at once, for a while, and then a question: does anything grow?

`load` is what happens to the server: pushes of all kinds, workers that succeed, fail and disappear,
refusals, watchers, waiters, operators, broken connections. `samples` is what is read of it, and
what must not grow. Nothing here is timed for speed: `python -m benchmarks` does that.
"""
