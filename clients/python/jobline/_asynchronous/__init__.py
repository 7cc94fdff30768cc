"""The client for asyncio: everything of `jobline._blocking`, awaited. One client belongs to one
event loop.
"""
