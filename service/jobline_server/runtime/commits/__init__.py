"""Commits: what the engine decided goes to disk, and then to those it concerns.

`commits` is the loop, `cuts` takes what goes into one commit, `checkpoints` folds the journal into
tables between two of them. Nothing here knows what a fact means.
"""
