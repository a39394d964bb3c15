"""A comparison of arms at a small scale: which cells, with which settings, and the steps that run them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict

from lvit_dense.engine.results import read_progress, read_results
from lvit_dense.experiment.cell import TEACHER, Cell
from lvit_dense.experiment.schedule import Step

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TOOLS, CONFIGS = REPOSITORY / "tools", REPOSITORY / "configs"
VERBS = {"imagenet": "classify", "maskrcnn": "detect (Mask R-CNN)", "upernet": "segment (UperNet)"}


@dataclass(frozen=True)
class Suite:
    """Cells that are run with common settings below one folder.

    Attributes:
        root: folder of all work dirs.
        cells: in the order of the table; an upstream cell that is not among them must have run before.
        teacher: what is copied from and distilled: a checkpoint, or a cell's work dir.
        options: per task, or per config name where one differs, settings on top of the shipped config; they are written
            as config files below ``root``.
        backbone: settings of ``model.backbone`` in all tasks.
    """

    root: Path
    cells: tuple[Cell, ...]
    teacher: str
    options: Mapping[str, Mapping[str, Any]]
    backbone: Mapping[str, Any] = field(default_factory=dict)

    def work_dir(self, cell: Cell) -> Path:
        """Where a cell's run lives."""
        return cell.work_dir(self.root)

    def config(self, cell: Cell) -> Path:
        """The cell's config file below ``root``: the shipped one as ``_base_``, and this suite's settings."""
        return self.root / "configs" / f"{cell.config_name}.py"

    def write_configs(self) -> None:
        """Write the config file of every cell."""
        for cell in self.cells:
            path = self.config(cell)
            path.parent.mkdir(parents=True, exist_ok=True)
            settings = ConfigDict(self.options.get(cell.config_name, self.options[cell.task]))
            model = settings.setdefault("model", ConfigDict())
            model.backbone = {**model.get("backbone", {}), **self.backbone}
            base = os.path.relpath(CONFIGS / path.name, path.parent)
            path.write_text(f"_base_ = {base!r}\n" + Config(settings).pretty_text)

    def steps(self) -> list[Step]:
        """Training of every cell, and multi-scale evaluation of the UperNet ones."""
        steps = []
        for cell in self.cells:
            steps.append(self._train(cell))
            if cell.task == "upernet":
                steps.append(self._multi_scale(cell))
        return steps

    def train_command(self, cell: Cell) -> list[str]:
        """The command a user would type; it resumes where the work dir holds a checkpoint."""
        command = [sys.executable, str(TOOLS / "train.py"), str(self.config(cell)), "--init", cell.init]
        command += ["--distill"] * cell.distill + ["--seed", str(cell.seed), "--work-root", str(self.root)]
        if self._takes_teacher(cell):
            command += ["--teacher", self.teacher]
        if (self.work_dir(cell) / "last_checkpoint").exists():
            command.append("--resume")
        return command

    def test_command(self, cell: Cell, *flags: str) -> list[str]:
        """Evaluation of a cell's last checkpoint, written beside its training results."""
        folder = str(self.work_dir(cell))
        return [sys.executable, str(TOOLS / "test.py"), str(self.config(cell)), folder, "--work-dir", folder, *flags]

    def _train(self, cell: Cell) -> Step:
        work_dir = self.work_dir(cell)
        teachers = [c for c in self.cells if self._takes_teacher(cell) and str(self.work_dir(c)) == self.teacher]
        needs = [c.name for c in (cell.upstream, *teachers) if c in self.cells]
        return Step(
            name=cell.name,
            title=f"train to {VERBS[cell.task]}: {cell.operator}, {cell.arm}, seed {cell.seed}",
            command=lambda: self.train_command(cell),
            log=work_dir / "train.log",
            done=lambda: {"trained", "val"} <= read_results(work_dir).keys(),
            needs=tuple(needs),
            progress=lambda: read_progress(work_dir),
        )

    def _multi_scale(self, cell: Cell) -> Step:
        work_dir = self.work_dir(cell)
        return Step(
            name=f"{cell.name} multi-scale",
            title=f"multi-scale test: {cell.operator}, {cell.arm}, seed {cell.seed}",
            command=lambda: self.test_command(cell, "--tta"),
            log=work_dir / "test.log",
            done=lambda: "tta" in read_results(work_dir),
            needs=(cell.name,),
        )

    def _takes_teacher(self, cell: Cell) -> bool:
        wants = cell.task == "imagenet" or cell.init == TEACHER
        return wants and str(self.work_dir(cell)) != self.teacher
