"""Check the data sets of a config: some pictures at the start of a run, or all of them."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mmengine.config import Config
from mmengine.registry import DATASETS

from lvit_dense.datasets.checks.finding import DataError, Finding, raise_fatal
from lvit_dense.datasets.checks.job import CHECKS, Job, Opened, Survey

QUICK_PICTURES = 16  # opened per data set at the start of a run: well under a second
Progress = Callable[[str, int, int], None]  # called with a title, pictures done, and their number


@dataclass
class Result:
    """What the checks of a config found, and how much they looked at, by data set."""

    findings: list[Finding] = field(default_factory=list)
    checked: dict[str, dict[str, int]] = field(default_factory=dict)


def quick_check(cfg: Config, splits: Sequence[str] = ("train", "val")) -> list[Finding]:
    """Check folders, annotation files and a few pictures of a config's data sets; called before a run.

    In a distributed run only the first process checks. Pictures are taken at equal distances from the whole set.

    Returns:
        the findings that are not fatal.

    Raises:
        DataError: a fatal finding, in one line.
    """
    if os.environ.get("RANK", "0") != "0":
        return []
    findings = check(cfg, splits, most=QUICK_PICTURES).findings
    raise_fatal(findings)
    return findings


def check(
    cfg: Config,
    splits: Sequence[str] = ("train", "val", "test"),
    most: int | None = None,
    workers: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Check the data sets of the given splits.

    Args:
        most: open at most so many pictures of each data set; None = all.
        workers: processes that open pictures; 0 = this one.
        progress: called while pictures are opened.
    """
    result = Result()
    for title, _, survey in surveys(cfg, splits):
        tasks = _spread(survey.tasks, most)
        opened = list(open_all(tasks, workers, title, progress))
        found = [*survey.findings, *(finding for one in opened for finding in one.findings)]
        result.findings += found + survey.conclude(opened)
        result.checked[title] = {**survey.counts, "opened": len(tasks)}
    return result


def surveys(cfg: Config, splits: Sequence[str]) -> Iterator[tuple[str, Job, Survey]]:
    """Title, job and survey of every data set of the splits, each data set once."""
    done: list[Any] = []
    for split in splits:
        loader = cfg.get(f"{split}_dataloader")
        for index, settings in enumerate(unwrap(loader["dataset"]) if loader else []):
            if settings in done:  # test_dataloader = val_dataloader
                continue
            done.append(settings)
            title = f"{split}{f' {index}' if index else ''}: {settings.get('type')}"
            job = Job(split, settings, dataset_class(cfg, settings["type"]), _heads(cfg), _evaluators(cfg, split))
            yield title, job, _survey(job)


def unwrap(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The data sets inside RepeatDataset, ClassBalancedDataset, ConcatDataset and the like."""
    if "datasets" in settings:
        return [inner for one in settings["datasets"] for inner in unwrap(one)]
    return unwrap(settings["dataset"]) if "dataset" in settings else [settings]


def dataset_class(cfg: Config, name: str | type) -> type:
    """The class of a data set's type under the config's default scope.

    Raises:
        KeyError: no such class is registered.
    """
    if isinstance(name, type):
        return name
    with DATASETS.switch_scope_and_registry(cfg.get("default_scope")) as registry:
        cls = registry.get(name)
    if cls is None:
        raise KeyError(f"data set type {name!r} is registered nowhere; add its module to custom_imports.imports")
    return cls


def _survey(job: Job) -> Survey:
    """The survey of the class's own kind, or of the nearest base class that has a check."""
    if job.remote:
        return Survey([_unchecked(job, "its files are remote (backend_args, or an address as path)")])
    try:
        job.classes()
    except DataError as error:
        return Survey(error.findings)
    for base in job.cls.__mro__:
        if base.__name__ in CHECKS.names():
            return CHECKS.get(base.__name__)(job)
    return Survey([_unchecked(job, f"there is no check for {job.cls.__name__}")])


def _unchecked(job: Job, why: str) -> Finding:
    known = f"one of {', '.join(CHECKS.names())}, or a class derived from one"
    return Finding("not-checked", job.key("type"), why, known, "Nothing to do", fatal=False)


def _heads(cfg: Config) -> dict[str, int]:
    """Every ``num_classes`` in the model, by config key; backbones have none."""
    found: dict[str, int] = {}

    def walk(node: Any, key: str) -> None:
        if isinstance(node, Mapping):
            for name, value in node.items():
                if name == "num_classes" and isinstance(value, int):
                    found[f"{key}.{name}"] = value
                else:
                    walk(value, f"{key}.{name}")
        elif isinstance(node, (list, tuple)):
            for index, value in enumerate(node):
                walk(value, f"{key}.{index}")

    walk(cfg.get("model") or {}, "model")
    return found


def _evaluators(cfg: Config, split: str) -> tuple[Mapping[str, Any], ...]:
    evaluators = cfg.get(f"{split}_evaluator") or ()
    return (evaluators,) if isinstance(evaluators, Mapping) else tuple(evaluators)


def _spread(tasks: list[Callable[[], Opened]], most: int | None) -> list[Callable[[], Opened]]:
    """At most so many tasks, at equal distances."""
    if most is None or len(tasks) <= most:
        return tasks
    return [tasks[index * len(tasks) // most] for index in range(most)]


def _run(task: Callable[[], Opened]) -> Opened:
    return task()


def open_all(
    tasks: list[Callable[[], Opened]], workers: int, title: str, progress: Progress | None
) -> Iterator[Opened]:
    """Run the tasks in order, here or in a pool of processes."""
    if not workers:
        yield from _counted(map(_run, tasks), len(tasks), title, progress)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from _counted(pool.imap(_run, tasks, chunksize=16), len(tasks), title, progress)


def _counted(results: Iterator[Opened], total: int, title: str, progress: Progress | None) -> Iterator[Opened]:
    for done, opened in enumerate(results, 1):
        if progress is not None:
            progress(title, done, total)
        yield opened
