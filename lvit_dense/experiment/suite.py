"""A comparison of arms at a small scale: which cells, with which settings, and the steps that run them."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict

from lvit_dense.engine.atomic_checkpoint import AtomicBackend
from lvit_dense.engine.results import read_progress, read_results
from lvit_dense.experiment.cell import TEACHER, Cell
from lvit_dense.experiment.schedule import Step

_PACKAGE = Path(__file__).resolve().parent.parent
REPOSITORY = _PACKAGE / ".mim" if (_PACKAGE / ".mim").is_dir() else _PACKAGE.parent  # in a wheel; in a clone
TOOLS, CONFIGS = REPOSITORY / "tools", REPOSITORY / "configs"
MULTI_SCALE = {"upernet": {"tta": ("--tta",)}}
VERBS = {"imagenet": "classify", "maskrcnn": "detect (Mask R-CNN)", "upernet": "segment (UperNet)"}


@dataclass(frozen=True)
class Suite:
    """Cells that are run with common settings below one folder.

    Attributes:
        root: folder of all work dirs.
        cells: in the order of the table; an upstream cell that is not among them must have run before.
        teacher: what is copied from and distilled: a checkpoint, or a cell's work dir; "" = what the configs say.
        options: per task, or per config name where one differs, settings on top of the shipped config; they are written
            as config files below ``root``. Empty = the shipped configs as they are.
        backbone: settings of ``model.backbone`` in all tasks.
        upstream: folder of the ImageNet runs that dense runs start from; None = ``root``.
        evaluations: per task, what follows its training: kind of result -> flags of ``tools/test.py``.
    """

    root: Path
    cells: tuple[Cell, ...]
    teacher: str = ""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    backbone: Mapping[str, Any] = field(default_factory=dict)
    upstream: Path | None = None
    evaluations: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=lambda: MULTI_SCALE)

    def work_dir(self, cell: Cell) -> Path:
        """Where a cell's run lives."""
        return cell.work_dir(self.root)

    def config(self, cell: Cell) -> Path:
        """The cell's config: the shipped one, or one below ``root`` that adds this suite's settings to it."""
        return (self.root / "configs" if self.options else CONFIGS) / f"{cell.config_name}.py"

    def write_configs(self) -> None:
        """Write the config files of the cells, where this suite has settings of its own.

        A file that is there and right is left alone, because other processes may be reading it.
        """
        for path, cell in {self.config(cell): cell for cell in self.cells if self.options}.items():
            settings = ConfigDict(self.options.get(cell.config_name, self.options[cell.task]))
            model = settings.setdefault("model", ConfigDict())
            model.backbone = {**model.get("backbone", {}), **self.backbone}
            base = os.path.relpath(CONFIGS / path.name, path.parent)
            text = f"_base_ = {base!r}\n" + Config(settings).pretty_text
            if not path.exists() or path.read_text() != text:
                AtomicBackend().put_text(text, path)

    def steps(self) -> list[Step]:
        """Training of every cell, each followed by its evaluations."""
        return [step for cell in self.cells for step in self.steps_of(cell)]

    def steps_of(self, cell: Cell, gpus: int = 1) -> list[Step]:
        """Training of one cell on some GPUs, and its evaluations."""
        kinds = self.evaluations.get(cell.task, {})
        return [self._train(cell, gpus), *(self._evaluate(cell, kind, flags) for kind, flags in kinds.items())]

    def train_command(self, cell: Cell, gpus: int = 1) -> list[str]:
        """The command a user would type; it resumes where the work dir holds a checkpoint."""
        config = str(self.config(cell))
        command = [sys.executable, str(TOOLS / "train.py"), config]
        if gpus > 1:
            command = [str(TOOLS / "dist_train.sh"), config, str(gpus)]
        command += [*cell.flags, "--work-root", str(self.upstream or self.root)]
        if self.upstream is not None:
            command += ["--work-dir", str(self.work_dir(cell))]
        if self._takes_teacher(cell):
            command += ["--teacher", self.teacher]
        if not self.options:  # the shipped recipe, with its batch, on however many GPUs
            command.append("--keep-batch")
        if (self.work_dir(cell) / "last_checkpoint").exists():
            command.append("--resume")
        return command

    def test_command(self, cell: Cell, *flags: str) -> list[str]:
        """Evaluation of a cell's last checkpoint, written beside its training results."""
        folder = str(self.work_dir(cell))
        return [sys.executable, str(TOOLS / "test.py"), str(self.config(cell)), folder, "--work-dir", folder, *flags]

    def needs(self, cell: Cell) -> list[Cell]:
        """Cells of this suite that must have run before: the upstream one, and the one that trains the teacher."""
        teachers = [c for c in self.cells if self._takes_teacher(cell) and str(self.work_dir(c)) == self.teacher]
        return [c for c in (cell.upstream, *teachers) if c is not None and c in self.cells]

    def _train(self, cell: Cell, gpus: int) -> Step:
        work_dir = self.work_dir(cell)
        return Step(
            name=cell.name,
            title=f"train to {VERBS[cell.task]}: {cell.operator}, {cell.arm}, seed {cell.seed}",
            command=lambda: self.train_command(cell, gpus),
            log=work_dir / "train.log",
            done=lambda: {"trained", "val"} <= read_results(work_dir).keys(),
            needs=tuple(c.name for c in self.needs(cell)),
            progress=lambda: read_progress(work_dir),
        )

    def _evaluate(self, cell: Cell, kind: str, flags: Sequence[str]) -> Step:
        work_dir = self.work_dir(cell)
        return Step(
            name=f"{cell.name} {kind}",
            title=f"{'multi-scale test' if kind == 'tta' else kind}: {cell.operator}, {cell.arm}, seed {cell.seed}",
            command=lambda: self.test_command(cell, *flags),
            log=work_dir / "test.log",
            done=lambda: kind in read_results(work_dir),
            needs=(cell.name,),
        )

    def _takes_teacher(self, cell: Cell) -> bool:
        """Random arms too: what a student takes from its teacher's architecture is the same in all arms."""
        wants = cell.task == "imagenet" or cell.init == TEACHER
        return bool(self.teacher) and wants and str(self.work_dir(cell)) != self.teacher
