"""The background: work that nobody asks for, one beat a file.

A beat has `run_once(now)` and returns what it did as counts; the loop around it (`beat.py`) is
shared. No beat scans everything: each takes slices, and what is left is left for its next turn.
Beats use the runtime as any caller does; they know no store and no socket.
"""
