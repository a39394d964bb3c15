"""What runs a model: optimiser groups, hooks, test-time augmentation, mmcv's ops.

Kept empty because ``import lvit_dense`` passes through it; ``lvit_dense.engine.register`` is what configs import.
"""
