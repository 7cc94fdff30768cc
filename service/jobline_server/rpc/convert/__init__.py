"""Converts requests into commands, and outcomes into messages.

Large requests are converted in bulk: columns as slices, rows in one loop without a call per row,
shared options through one table. Every field that is used goes through `validate`. Nothing here
waits, and nothing here decides.
"""
