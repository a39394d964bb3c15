"""Data sets and data checks: importing this package registers what mmengine's registry builds."""

from lvit_dense.discovery import import_siblings

import_siblings("lvit_dense.datasets")
