"""Requests into commands, outcomes into messages.

What a client sends many at a time is converted many at a time: columns as slices, rows in one loop
without a call a row, shared options through one table. Every field that is taken goes through
`validate`. Nothing here waits, and nothing here decides.
"""
