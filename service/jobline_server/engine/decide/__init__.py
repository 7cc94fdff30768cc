"""Decide: what a command does, a file a verb.

Each function reads the shard, emits facts and returns an outcome. What cannot be done raises
`Refused` before the first fact is emitted, or is an outcome of its own item; nothing is half done.
"""
