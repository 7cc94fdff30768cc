"""Ended jobs: their way into the ended store, how long they stay, and who may change them."""
