"""The name of one run: ``maskrcnn_relu_base@mlpcopy+distill`` <-> config, settings, work dir, upstream run."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from lvit_dense.catalog import suggest
from lvit_dense.experiment.teachers import TEACHERS
from lvit_dense.operators import OPERATORS
from lvit_dense.transfer import PLANS
from lvit_dense.vit import ARCHS

TASKS = ("imagenet", "maskrcnn", "upernet")
SCRATCH = "scratch"  # a dense run without any ImageNet stage
TEACHER = "teacher"  # a dense softmax run that starts from the teacher itself: the tables' Softmax row
_NAME = re.compile(
    r"(?P<task>[a-z]+)_(?P<operator>[a-z0-9]+)_(?P<size>[a-z]+)"
    r"(@(?P<arm>[^@~]+)(~(?P<teacher>[^@~]+))?(@seed(?P<seed>\d+))?)?"
)


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    A dense cell names how its *ImageNet* student was initialised and trained: every row of Tables D and E, Random
    included, starts its dense run from that student's checkpoint.

    Attributes:
        task: ``imagenet``, ``maskrcnn`` or ``upernet``.
        operator, size: as in the config's name.
        init: a transfer plan, or for dense tasks ``scratch`` / ``teacher``.
        distill: whether the ImageNet stage distils.
        seed: of both stages; 0 is not written.
        teacher: short name of a teacher other than the config's, see ``TEACHERS``; "" is not written.
    """

    task: str
    operator: str
    size: str
    init: str = "random"
    distill: bool = False
    seed: int = 0
    teacher: str = ""

    def __post_init__(self) -> None:
        inits = [*PLANS.names(), SCRATCH, TEACHER]
        for what, value, valid in (
            ("task", self.task, TASKS),
            ("operator", self.operator, OPERATORS.names()),
            ("size", self.size, ARCHS),
            ("init", self.init, inits),
            ("teacher", self.teacher, ("", *TEACHERS)),
        ):
            if value not in valid:
                raise ValueError(f"unknown {what} {value!r}: {suggest(value, valid)}")
        if self.task == "imagenet" and self.init in (SCRATCH, TEACHER):
            raise ValueError(f"init {self.init!r} is for dense tasks; the ImageNet stage's is called 'random'")
        if self.distill and self.init in (SCRATCH, TEACHER):
            raise ValueError(f"init {self.init!r} has no ImageNet stage that could distil")

    @classmethod
    def parse(cls, name: str) -> "Cell":
        """Read ``task_operator_size[@init[+distill][~teacher][@seedN]]``; without an arm, the task's default arm."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is no cell: expected task_operator_size@init[+distill][~teacher][@seedN]")
        part = match.groupdict()
        cell = default_cell(part["task"], part["operator"], part["size"])
        if part["arm"] is not None:
            init, plus, distill = part["arm"].partition("+")
            if plus and distill != "distill":
                raise ValueError(f"{name!r}: expected '+distill', got '+{distill}'")
            cell = replace(cell, init=init, distill=bool(plus))
        return replace(cell, seed=int(part["seed"] or 0), teacher=part["teacher"] or "")

    @property
    def arm(self) -> str:
        """``mlpcopy+distill``."""
        return self.init + ("+distill" if self.distill else "")

    @property
    def config_name(self) -> str:
        """``maskrcnn_relu_base``."""
        return f"{self.task}_{self.operator}_{self.size}"

    @property
    def name(self) -> str:
        """``maskrcnn_relu_base@mlpcopy+distill``, with ``~teacher`` and ``@seedN`` where they are not the default."""
        teacher = f"~{self.teacher}" if self.teacher else ""
        return f"{self.config_name}@{self.arm}{teacher}" + (f"@seed{self.seed}" if self.seed else "")

    @property
    def upstream(self) -> "Cell | None":
        """The ImageNet run whose checkpoint a dense run starts from."""
        if self.task == "imagenet" or self.init in (SCRATCH, TEACHER):
            return None
        return replace(self, task="imagenet")

    @property
    def command(self) -> str:
        """The command that trains this cell."""
        return " ".join(["python tools/train.py", f"configs/{self.config_name}.py", *self.flags])

    @property
    def flags(self) -> list[str]:
        """The flags of ``tools/train.py`` that name this arm."""
        flags = ["--init", self.init, *["--distill"] * self.distill]
        flags += ["--teacher", self.teacher] if self.teacher else []
        return flags + (["--seed", str(self.seed)] if self.seed else [])

    def work_dir(self, root: str | Path = "work_dirs") -> Path:
        """Where this run lives."""
        return Path(root) / self.name


def default_cell(task: str, operator: str, size: str) -> Cell:
    """The arm of a config that is run without ``--init``: the paper's best for students, plain for ImageNet."""
    if task == "imagenet":
        return Cell(task, operator, size)
    if operator == "softmax":
        return Cell(task, operator, size, init=TEACHER)
    return Cell(task, operator, size, init="mlpcopy", distill=True)
