"""Imports every module of this package, so that configs (``custom_imports``) find its hooks and constructors."""

from lvit_dense.discovery import import_siblings

import_siblings("lvit_dense.engine")
