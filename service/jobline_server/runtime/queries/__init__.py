"""Queries: reads of single jobs and of pages, and why a job is not running. Nothing here changes
anything.

Live jobs are read from memory, ended ones from the ended store. Walks over many jobs run in slices,
and the loop is free between them.
"""
