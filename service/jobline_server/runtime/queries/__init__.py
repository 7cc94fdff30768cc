"""Queries: reads of jobs, queues and workers. Nothing here changes anything.

A walk over many jobs goes in slices, with the loop free in between.
"""
