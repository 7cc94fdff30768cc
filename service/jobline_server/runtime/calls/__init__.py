"""Calls: one file per thing that producers, workers and operators ask for.

Each converts nothing and checks no field (`rpc` did); it finds the shard, decides, and replies
after the commit.
"""
