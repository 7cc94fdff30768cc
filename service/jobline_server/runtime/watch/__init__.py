"""Watchers: events of committed batches, and calls that wait for jobs to end."""
