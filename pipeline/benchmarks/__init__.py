"""Measures the pipeline: `make bench-pipeline MILLIONS=1,10`."""
