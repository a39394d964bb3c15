"""Import every module of a package once, so that what registers itself is found."""

import functools
import importlib
import pkgutil


@functools.cache
def import_siblings(package: str) -> None:
    """Import all modules directly inside ``package`` (a dotted name)."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
