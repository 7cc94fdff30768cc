"""The client for asyncio: everything of `jobline.blocking`, awaited. One client belongs to one
event loop.
"""
