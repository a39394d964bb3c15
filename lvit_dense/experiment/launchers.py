"""Where the cells of a table run: this machine, or a SLURM cluster whose queue does the waiting."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from lvit_dense.engine.results import read_progress
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.ledger import Ledger
from lvit_dense.experiment.run_cell import is_finished
from lvit_dense.experiment.schedule import Step, run_steps
from lvit_dense.experiment.suite import TOOLS, VERBS, Suite


@dataclass(frozen=True)
class Run:
    """A table's suite on its way: what every launcher needs to know.

    Attributes:
        table: name of the table.
        gpus: of each cell; more than one go through torchrun.
    """

    table: str
    suite: Suite
    ledger: Ledger
    gpus: int = 1

    def command(self, cell: str) -> list[str]:
        """The command that runs one cell and writes its ledger line."""
        tool = [sys.executable, str(TOOLS / "reproduce.py"), "cell", self.table, "--cell", cell]
        return [*tool, "--root", str(self.suite.root), "--gpus", str(self.gpus)]

    def log(self, cell: Cell) -> Path:
        """Output of that command."""
        return self.suite.work_dir(cell) / "reproduce.log"

    def pending(self) -> list[Cell]:
        """Cells that the ledger does not have as finished, upstream first."""
        return [cell for cell in self.suite.cells if not is_finished(self.suite, cell, self.ledger)]


def run_local(run: Run, workers: int, devices: Sequence[str], console: Console) -> bool:
    """Run all cells on this machine, at most ``workers`` at once; return whether all succeeded."""
    outcomes = run_steps([_step(run, cell) for cell in run.suite.cells], workers, console, devices)
    return all(outcome.state in ("present", "done") for outcome in outcomes.values())


def _step(run: Run, cell: Cell) -> Step:
    suite = run.suite
    return Step(
        name=cell.name,
        title=f"{VERBS[cell.task]}: {cell.operator}, {cell.arm}, seed {cell.seed}",
        command=lambda: run.command(cell.name),
        log=run.log(cell),
        done=lambda: is_finished(suite, cell, run.ledger),
        needs=tuple(needed.name for needed in suite.needs(cell)),
        progress=lambda: read_progress(suite.work_dir(cell)),
    )


def run_slurm(run: Run, flags: Sequence[str], console: Console) -> None:
    """Submit every pending cell with sbatch: one job array over its seeds, after the jobs of what it starts from.

    Element N of an array waits for element N of the upstream array (``aftercorr``), so that a failed seed holds up only
    itself. Seeds whose upstream run is finished already go into an array without a dependency.

    Args:
        flags: further flags of sbatch, such as ``--partition=gpu --time=48:00:00``.

    Raises:
        FileNotFoundError: there is no sbatch.
        RuntimeError: sbatch refused a job; the message is sbatch's own.
    """
    if shutil.which("sbatch") is None:
        raise FileNotFoundError("no sbatch on PATH: submit from a login node of the cluster, or use --launcher local")
    pending = {cell.name for cell in run.pending()}
    jobs: dict[Cell, str] = {}  # one cell of seed 0 -> job of its array
    for first in dict.fromkeys(replace(cell, seed=0) for cell in run.suite.cells):
        cells = [cell for cell in run.suite.cells if replace(cell, seed=0) == first and cell.name in pending]
        waiting = [cell for cell in cells if any(needed.name in pending for needed in run.suite.needs(cell))]
        for group in (waiting, [cell for cell in cells if cell not in waiting]):
            if group:
                needed = _dependencies(run.suite, group, pending, jobs)
                jobs[first] = _submit(run, first, [cell.seed for cell in group], needed, flags)
                console.print(f"job {jobs[first]}  {first.name}  seeds {', '.join(str(c.seed) for c in group)}")


def _dependencies(suite: Suite, group: Sequence[Cell], pending: Collection[str], jobs: Mapping[Cell, str]) -> list[str]:
    """What an array waits for: element by element where the needed runs have the seeds of the array, else for all."""
    found = []
    for needed in zip(*(suite.needs(cell) for cell in group), strict=True):
        if any(n.name in pending for n in needed):
            same = all(n.seed == cell.seed for n, cell in zip(needed, group, strict=True))
            found.append(f"{'aftercorr' if same else 'afterok'}:{jobs[replace(needed[0], seed=0)]}")
    return found


def _submit(run: Run, cell: Cell, seeds: Sequence[int], needed: Sequence[str], flags: Sequence[str]) -> str:
    name = f'{cell.name}@seed"$SLURM_ARRAY_TASK_ID"'
    log = run.suite.root / "slurm" / f"{cell.name}_%a.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = ["sbatch", "--parsable", f"--job-name={cell.name}", f"--array={','.join(map(str, seeds))}"]
    command += [f"--output={log}", f"--gpus-per-node={run.gpus}", "--ntasks-per-node=1", "--nodes=1"]
    # what waits for a failed run leaves the queue
    command += [f"--dependency={','.join(needed)}", "--kill-on-invalid-dep=yes"] if needed else []
    line = " ".join(part if part == name else shlex.quote(part) for part in run.command(name))
    done = subprocess.run([*command, *flags, f"--wrap={line}"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"sbatch refused {cell.name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip().split(";")[0]
