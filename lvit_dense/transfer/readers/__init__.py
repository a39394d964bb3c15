"""Checkpoint families, one file each, found by name through ``READERS``."""
