"""Attention operators: one file each, found by name through ``OPERATORS``."""

from lvit_dense.operators.base import (
    OPERATORS,
    AttentionInputs,
    AttentionOperator,
    Grid,
    TokenLayout,
)

__all__ = ["OPERATORS", "AttentionInputs", "AttentionOperator", "Grid", "TokenLayout"]
