"""What is checked: one data set of a config, opened up and with its paths joined as mmengine joins them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.fileio import list_from_file

from lvit_dense.catalog import Catalog
from lvit_dense.datasets.checks.finding import DataError, Finding


class Opened(NamedTuple):
    """What one opened picture, with its label file where there is one, gave."""

    findings: list[Finding]
    labels: frozenset[int] = frozenset()  # label values that occur
    ignored: int = 0  # pixels that the loss ignores
    pixels: int = 0


def _nothing(opened: list[Opened]) -> list[Finding]:
    return []


@dataclass
class Survey:
    """What can be said without opening pictures, and how to open them.

    Args:
        findings: found so far.
        tasks: one call per picture; they can be sent to other processes.
        conclude: findings that need all opened pictures together.
        counts: what there is, for the report.
    """

    findings: list[Finding] = field(default_factory=list)
    tasks: list[Callable[[], Opened]] = field(default_factory=list)
    conclude: Callable[[list[Opened]], list[Finding]] = _nothing
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One data set of a config.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        settings: its config, without wrappers.
        cls: its class.
        heads: every ``num_classes`` of the model, by config key.
        evaluators: the metrics' configs of this split.
    """

    split: str
    settings: Mapping[str, Any]
    cls: type
    heads: Mapping[str, int] = field(default_factory=dict)
    evaluators: tuple[Mapping[str, Any], ...] = ()

    def path(self, value: str) -> Path:
        """Join with data_root, as mmengine does, unless ``value`` is absolute."""
        return Path(self.settings.get("data_root") or "", value)

    def classes(self) -> tuple[str, ...]:
        """Class names in label order: the config's metainfo, else the data set class's own.

        A string is the path of a file with one class per line, as in mmengine.

        Raises:
            DataError: a string that is no such file; mmengine would take its letters for classes.
        """
        own = (self.settings.get("metainfo") or {}).get("classes")
        if not isinstance(own, str):
            return tuple(own or getattr(self.cls, "METAINFO", {}).get("classes") or ())
        try:
            return tuple(list_from_file(own))
        except (OSError, ValueError, KeyError) as error:
            value = f"the string {own!r}, which is no readable file"
            expected = "a tuple of class names, or the path of a file with one class per line"
            cure = f"If it is a class name, its comma is missing: classes=({own!r},)"
            raise DataError([Finding("class-names", self.key("metainfo.classes"), value, expected, cure)]) from error

    @property
    def format_only(self) -> bool:
        """Whether this split is predicted only, so that its annotations are not read."""
        return bool(self.evaluators) and all(evaluator.get("format_only") for evaluator in self.evaluators)

    @property
    def remote(self) -> bool:
        """Whether files are read through another backend of mmengine than the local disk."""
        prefix = self.settings.get("data_prefix")
        prefixes = prefix.values() if isinstance(prefix, Mapping) else (prefix,)
        paths = (self.settings.get("data_root"), self.settings.get("ann_file"), *prefixes)
        return bool(self.settings.get("backend_args")) or any("://" in str(path) for path in paths)

    def key(self, name: str) -> str:
        """The config key of a setting, for cures."""
        return f"{self.split}_dataloader.dataset.{name}"


CHECKS: Catalog[Callable[[Job], Survey]] = Catalog("data check", "lvit_dense.datasets.checks")


def missing_folder(job: Job, root: Path, setting: str, layout: str) -> Finding:
    """The finding for a data root or one of its folders that is not there."""
    there = root
    while not there.is_dir() and there != there.parent:
        there = there.parent
    inside = sorted(entry.name for entry in there.iterdir())[:8] if there.is_dir() else []
    value = f"no such folder ({there}/ holds {', '.join(inside) or 'nothing'})"
    cure = f"Link the data there (ln -s /path/to/data {root}) or set {job.key(setting)} with --cfg-options"
    return Finding("missing-root", str(root), value, layout, cure)


def wrong_heads(job: Job, classes: int, file: str) -> list[Finding]:
    """A finding for every ``num_classes`` of the model that is not the number of the data set's classes."""
    wrong = {key: count for key, count in job.heads.items() if count != classes}
    if not wrong:
        return []
    value = ", ".join(f"{key}={count}" for key, count in wrong.items())
    cure = f"Set --cfg-options {' '.join(f'{key}={classes}' for key in wrong)}, or correct the class names"
    return [Finding("class-count", file, value, f"{classes}, the number of classes of the data set", cure)]
