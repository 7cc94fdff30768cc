"""Calls: one file per kind of call of producers, workers and operators.

A call is checked and converted already (`rpc`). The code here finds the shard, decides, and replies
after the commit.
"""
