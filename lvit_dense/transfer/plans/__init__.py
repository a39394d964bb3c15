"""Transfer plans, found by name through ``PLANS``."""
