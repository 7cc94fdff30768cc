"""Tests of the history pipeline."""
