"""Checks of COCO, ADE20K and ImageFolder data before they cost a training run; one module per layout."""

from lvit_dense.datasets.checks.finding import DataError, Finding
from lvit_dense.datasets.checks.run import check, quick_check
from lvit_dense.datasets.checks.skip import skip_bad

__all__ = ["DataError", "Finding", "check", "quick_check", "skip_bad"]
