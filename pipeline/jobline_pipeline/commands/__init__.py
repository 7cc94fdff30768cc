"""The commands of `jobline-pipeline`, one module per command: `register(app)` adds it.

Heavy imports (Spark, pandas) wait until a command runs, so that `--help` is instant.
"""
