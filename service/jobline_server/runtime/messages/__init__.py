"""Messages between shards on their way: after the sender's commit a courier delivers them over a
link, and has them forgotten after the receiver's commit. What a message means is the engine's
(`engine/shard_messages.py`).
"""
