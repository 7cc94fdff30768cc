"""The client for asyncio. One client belongs to one event loop.

`jobline._blocking` is generated from this room (`make gen`); `connection` and `pusher` are written
by hand in both.
"""
