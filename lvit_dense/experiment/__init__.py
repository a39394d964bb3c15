"""Runs by name: cells, how they set a config, and what they write."""
