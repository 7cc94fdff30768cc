"""Telemetry: log lines, counters of calls, and the lag of the loop.

Counters are plain numbers that the loop adds to and a scrape reads: no lock, no allocation and no
log line per job. What the numbers mean for a queue or a job is not known here.
"""
