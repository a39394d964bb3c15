"""Parts of nested configs and the differences between two of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from lvit_dense.catalog import suggest

ABSENT = "(absent)"


def part(node: Any, key: str) -> Any:
    """The part of a nested mapping or list that a dotted key names; list positions are numbers.

    Raises:
        KeyError: there is no such part; the message lists what there is at that place.
    """
    done: list[str] = []
    for name in key.split("."):
        keys = flat_keys(node)
        if name not in keys:
            place = ".".join(done) or "the config"
            raise KeyError(f"{place} has no {name!r}: {suggest(name, keys)}")
        node = node[int(name)] if _is_list(node) else node[name]
        done.append(name)
    return node


def flat_keys(node: Any) -> list[str]:
    """The names at one level; nothing for a plain value."""
    if _is_list(node):
        return [str(index) for index in range(len(node))]
    return list(node.keys()) if hasattr(node, "keys") else []


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Every plain value by its dotted key; empty mappings and lists count as values."""
    items: list[tuple[str, Any]]
    if isinstance(node, Mapping) and node:
        items = [(str(name), value) for name, value in node.items()]
    elif _is_list(node) and any(isinstance(value, Mapping) for value in node):
        items = [(str(index), value) for index, value in enumerate(node)]
    else:
        return {prefix: node}
    found: dict[str, Any] = {}
    for name, value in items:
        found |= flatten(value, f"{prefix}.{name}" if prefix else name)
    return found


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys whose values differ, with both values; a missing one is ``"(absent)"``."""
    here, there = flatten(first), flatten(second)
    keys = [*here, *(key for key in there if key not in here)]
    pairs = {key: (here.get(key, ABSENT), there.get(key, ABSENT)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _is_list(node: Any) -> bool:
    return isinstance(node, Sequence) and not isinstance(node, str)
