"""Commits: writes what the engine decided to disk, and then notifies those it concerns.

`commits` is the loop, and `cuts` takes the facts of one commit. Nothing here knows what a fact
means.
"""
