"""Decide: turns commands into facts, one file per verb.

Each function reads the shard, emits facts and returns an outcome. A command that cannot be done
raises `Refused` before the first fact is emitted; an item that cannot be done gets an outcome of
its own. Nothing is half done.
"""
