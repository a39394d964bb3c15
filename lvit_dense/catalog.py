"""Catalogs of named things (operators, readers, plans, terms, tables) that register themselves."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from lvit_dense.discovery import import_siblings

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? "`` (empty when nothing is near) followed by all known names."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"Known: {', '.join(known) or 'none'}"


def check_arguments(what: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise TypeError for keyword arguments that ``function`` does not take, naming the nearest ones."""
    known = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    for name in arguments:
        if name not in known:
            raise TypeError(f"{what} has no argument {name!r}: {suggest(name, known)}")


def naming_unknown_arguments(init: F) -> F:
    """Decorate an ``__init__`` so that a misspelt keyword is answered with the nearest valid one."""

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        check_arguments(type(self).__name__, init, kwargs)
        init(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


class Catalog(Generic[T]):
    """Things of one kind under unique names, found by importing every module of a package.

    Args:
        kind: what the entries are, for error messages, such as ``"attention operator"``.
        package: dotted name of the package whose modules register entries.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files an entry under ``name``; a second entry of that name is an error."""

        def add(entry: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice: {self._entries[name]!r} and {entry!r}")
            self._entries[name] = entry
            return entry

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        import_siblings(self._package)
        return sorted(self._entries)

    def get(self, name: str) -> T:
        """Return the entry called ``name``.

        Raises:
            KeyError: unknown name; the message gives the nearest and all valid names.
        """
        names = self.names()
        if name not in self._entries:
            raise KeyError(f"unknown {self.kind} {name!r}: {suggest(name, names)}")
        return self._entries[name]

    def build(self, spec: str | Mapping[str, Any], **context: Any) -> Any:
        """Call the entry that ``spec`` names: ``"relu"`` or ``dict(type="relu", eps=1e-6)``.

        Args:
            spec: a name, or a mapping with ``type`` and the entry's switches.
            context: arguments that the caller, not the user, supplies.
        """
        options = {"type": spec} if isinstance(spec, str) else dict(spec)
        if "type" not in options:
            raise KeyError(f"a {self.kind} needs 'type', got {dict(options)}: {suggest('', self.names())}")
        name = options.pop("type")
        entry = self.get(name)
        assert callable(entry)
        check_arguments(f"{self.kind} {name!r}", entry, options)
        return entry(**context, **options)
