"""The tables, in their versions."""
