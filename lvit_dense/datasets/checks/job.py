"""What is checked: one data set of a config, opened up and with its paths joined as mmengine joins them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lvit_dense.catalog import Catalog
from lvit_dense.datasets.checks.finding import Finding


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
        """Class names in label order: the config's metainfo, else the data set class's own."""
        own = (self.settings.get("metainfo") or {}).get("classes") or getattr(self.cls, "METAINFO", {}).get("classes")
        return (own,) if isinstance(own, str) else tuple(own or ())

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
