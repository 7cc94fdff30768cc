"""Telemetry: what the server says about itself to those who run it: lines, counters, lag.

Counters are plain numbers that the loop adds to, read only when somebody scrapes: nothing here
costs a lock, an allocation or a line a job. What the numbers mean for a queue or a job is not known
here.
"""
