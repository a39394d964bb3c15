"""What the command line of ``tools/train.py`` and ``tools/test.py`` does to a config, before anything is built."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config, ConfigDict

from lvit_dense.experiment.cell import SCRATCH, TEACHER, Cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.reproduction import expectations
from lvit_dense.experiment.suite import CONFIGS
from lvit_dense.operators import OPERATORS
from lvit_dense.transfer import PLANS, newest_checkpoint, read_source
from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD

PROVENANCE = "ProvenanceHook"  # states the ViT's parts in checkpoints, and refuses weights that do not fit


def own_weights(cfg: Config, cell: Cell) -> str:
    """``key=value`` of weights that a user's config or options name and the shipped config does not; "" = none."""
    if cell.task == "imagenet":
        named = {"model.transfer.source": "transfer", "model.distill.teacher": "distill"}
        found = {key: (cfg.model.get(part) or {}).get(key.rpartition(".")[2]) for key, part in named.items()}
        return ", ".join(f"{key}={value}" for key, value in found.items() if value)
    given, file = cfg.model.backbone.get("transfer"), CONFIGS / f"{cell.config_name}.py"
    ours = not file.exists() or given == Config.fromfile(file).model.backbone.transfer
    return "" if ours else f"model.backbone.transfer={given}"


def set_arm(cfg: Config, cell: Cell, work_root: str, teacher: str | None) -> None:
    """Write a cell's initialisation and distillation into its config.

    Switches that the config sets stay: ``transfer=dict(plan=dict(copy_norms=True))``, ``distill=dict(weight=100)``.

    Args:
        work_root: folder of the upstream run's work dir.
        teacher: source of the copied weights and of the teacher; None = the config's ``teacher``.
    """
    source = teacher or cfg.get("teacher")
    cfg.randomness = {"seed": cell.seed, **cfg.get("randomness", {})}
    if cell.task == "imagenet":
        copies = PLANS.get(cell.init).needs_source
        if source is None and (copies or cell.distill):
            raise ValueError(f"{cell.name} needs a teacher: give --teacher PATH, or 'teacher' in the config")
        facts = teacher_facts(cfg)
        given = (cfg.model.pop("transfer", None) or {}).get("plan")
        if cell.init != "random":
            plan = {**given, "type": cell.init} if isinstance(given, dict) else cell.init
            cfg.model.transfer = {"plan": plan, **({"source": source, **facts} if copies else {})}
        options = {**(cfg.model.pop("distill", None) or {}), "teacher": source, **facts}
        if cell.distill:
            cfg.model.distill = options
    elif cell.init == SCRATCH:
        cfg.model.backbone.pop("transfer", None)
    elif cell.init == TEACHER:
        if source is None:
            raise ValueError(f"{cell.name} starts from a teacher: give --teacher PATH, or 'teacher' in the config")
        cfg.model.backbone.transfer = {"plan": "fullcopy", "source": source}
    else:
        assert cell.upstream is not None
        cfg.model.backbone.transfer = {"plan": "pretrained", "source": str(cell.upstream.work_dir(work_root))}


def teacher_facts(cfg: Config) -> dict[str, dict[str, Any]]:
    """``dict(facts=...)`` of the ImageNet stage's teacher, which the file does not tell; empty where none are given.

    It is one file that is copied and distilled, so facts given for one of them hold for both.
    """
    facts: dict[str, Any] = {}
    for part in ("transfer", "distill"):
        facts.update((cfg.model.get(part) or {}).get("facts") or {})
    return {"facts": facts} if facts else {}


def state_pixels(cfg: Config) -> None:
    """Tell the distillation how the training pictures are normalised, where that is not ImageNet's way."""
    transform = cfg.get("train_dataloader", {}).get("dataset", {}).get("transform", {})
    if cfg.model.get("distill") and "mean" in transform and "std" in transform:
        own = (tuple(transform["mean"]), tuple(transform["std"]))
        if own != (IMAGENET_MEAN, IMAGENET_STD):
            cfg.model.distill.update(pixel_mean=own[0], pixel_std=own[1])


def expect_paper(cfg: Config, cell: Cell) -> None:
    """Have the run compare its single-scale result with the paper's, where a table has the cell."""
    known = expectations(cell.config_name).get(replace(cell, seed=0), {})
    validated = {METRICS[column]: entry for column, entry in known.items() if METRICS[column].kind == "val"}
    if validated:
        expected = {
            metric.name: (value / metric.factor, metric.tolerance / metric.factor)
            for metric, (value, _) in validated.items()
        }
        source = "; ".join(dict.fromkeys(source for _, source in validated.values()))
        hook = {"type": "ExpectedMetricHook", "expected": expected, "source": source}
        cfg.custom_hooks = [*cfg.get("custom_hooks", []), hook]


def check_sources(cfg: Config) -> None:
    """Raise FileNotFoundError where a weight file or work dir is missing, with the command that makes it if we know."""
    for owner, key in _source_places(cfg):
        path = Path(owner[key])
        if not owner[key].startswith("timm:") and not path.exists():
            raise FileNotFoundError(_missing(path))


def adopt_native_parts(
    cfg: Config,
    teacher: str | None = None,
    native_parts: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give the ViT the parts of the weights it starts from that its config does not set; return what was added.

    A run that continues one of our checkpoints takes all its parts. A student of a foreign teacher takes LayerScale,
    starting at 1 where it is not copied, and with ``native_parts`` the rest.

    Args:
        teacher: a source named on the command line counts even for an arm that copies nothing from it, so that all
            arms of a comparison have one architecture.
        facts: what that source does not tell about itself.
    """
    added: dict[str, Any] = {}
    backbone = cfg.model.backbone
    sources = {teacher: facts} if teacher else {}
    sources |= {owner[key]: owner.get("facts") for owner, key in _source_places(cfg)}
    for spec in sorted(sources):
        source = read_source(spec, facts=sources[spec])
        parts = source.student_arguments(native_parts or source.family == "lvit_dense")
        if parts.get("registers") and not _takes_registers(backbone):
            parts["registers"] = 0
        for name in parts.keys() - backbone.keys():
            added[name] = backbone[name] = parts[name]
    return added


def _takes_registers(backbone: ConfigDict) -> bool:
    """Whether the operators can attend with tokens that lie on no grid; the others are those without class token."""
    operators = backbone.get("operator", "relu")
    operators = operators if isinstance(operators, list) else [operators]
    names = [one if isinstance(one, str) else one["type"] for one in operators]
    return all(OPERATORS.get(name).tokens.class_token for name in names)


def keep_hooks(cfg: Config) -> str:
    """Put back the hook that checks weights where a config's own ``custom_hooks`` replaced the shipped list.

    Returns:
        one line that names what the config goes without, "" where it has everything.
    """
    own = [hook.type for hook in cfg.get("custom_hooks") or []]
    lost = [hook for hook in Config.fromfile(CONFIGS / "_base_" / "runtime.py").custom_hooks if hook.type not in own]
    cfg.custom_hooks = [*(cfg.get("custom_hooks") or []), *(hook for hook in lost if hook.type == PROVENANCE)]
    names = ", ".join(hook.type for hook in lost if hook.type != PROVENANCE)
    return names and (
        f"WARNING custom_hooks of this config replaces the list and goes without {names}; "
        "write custom_hooks = [*_base_.custom_hooks, dict(type=...)]"
    )


def set_amp(cfg: Config) -> None:
    """``--amp``: mixed precision with a dynamic loss scale.

    Raises:
        RuntimeError: no CUDA device; mmengine's AmpOptimWrapper would fail later.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("--amp needs a CUDA device and there is none; leave the flag out to train in float32")
    cfg.optim_wrapper.type = "AmpOptimWrapper"
    cfg.optim_wrapper.setdefault("loss_scale", "dynamic")


def set_resume(cfg: Config, checkpoint: str) -> None:
    """``--resume [CHECKPOINT]``: a file, a run's folder (its newest checkpoint), or 'auto', the run's own work dir.

    Raises:
        FileNotFoundError: no such file or folder, or a folder without a checkpoint.
    """
    cfg.resume = True
    cfg.load_from = None
    if checkpoint != "auto":
        path = Path(checkpoint)
        path = newest_checkpoint(path) if path.is_dir() else path
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint {path}: give --resume a .pth file or the work dir of a run")
        cfg.load_from = str(path)


def drop_sources(cfg: Config) -> None:
    """Forget where weights came from: a test needs its checkpoint only, and no teacher."""
    for owner in (cfg.model, cfg.model.get("backbone", {})):
        for key in ("transfer", "distill"):
            owner.pop(key, None)


def set_tta(cfg: Config) -> None:
    """``--tta``: the config's multi-scale and flip views.

    Raises:
        ValueError: the config has none.
    """
    if "tta_model" not in cfg or "tta_pipeline" not in cfg:
        raise ValueError(
            "--tta needs tta_model and tta_pipeline in the config; the shipped maskrcnn and upernet have them"
        )
    cfg.model = ConfigDict(**cfg.tta_model, module=cfg.model)
    dataset = cfg.test_dataloader.dataset
    while "dataset" in dataset:
        dataset = dataset.dataset
    dataset.pipeline = cfg.tta_pipeline


def set_predictions_file(cfg: Config, path: str) -> None:
    """``--out``: dump predictions, by the class that keeps the task's small: run-length masks, label maps.

    Raises:
        ValueError: a name that mmengine's DumpResults would refuse later.
    """
    if not path.endswith((".pkl", ".pickle")):
        raise ValueError(f"--out {path}: predictions are pickled; expected a name that ends in .pkl or .pickle")
    kind = {"mmdet": "DumpDetResults", "mmseg": "DumpSegResults"}.get(cfg.get("default_scope"), "DumpResults")
    evaluators = cfg.test_evaluator if isinstance(cfg.test_evaluator, (list, tuple)) else [cfg.test_evaluator]
    cfg.test_evaluator = [*evaluators, {"type": kind, "out_file_path": path}]


def set_pictures(cfg: Config, folder: str | None, show: bool) -> None:
    """``--show-dir`` / ``--show``: draw predictions, by the visualisation hook that the task's library ships."""
    if "visualization" not in cfg.default_hooks:
        raise ValueError("this task has no pictures: default_hooks.visualization is not set")
    cfg.default_hooks.visualization.update(draw=True, show=show)
    if cfg.default_scope == "mmdet":
        cfg.default_hooks.visualization.test_out_dir = folder
    elif folder is not None:
        cfg.visualizer.save_dir = folder


def _source_places(cfg: Config) -> list[tuple[ConfigDict, str]]:
    """Where a config names weights: (mapping, key)."""
    owners = [(cfg.model.get("transfer"), "source"), (cfg.model.get("distill"), "teacher")]
    owners.append((cfg.model.get("backbone", {}).get("transfer"), "source"))
    return [(owner, key) for owner, key in owners if owner is not None and owner.get(key)]


def _missing(path: Path) -> str:
    try:
        cell = Cell.parse(path.name)
    except ValueError:
        return f"no weights at {path}: give a checkpoint, a work dir or 'timm:NAME' (--teacher, or ...transfer.source)"
    return (
        f"the upstream run {cell.name} is not trained yet ({path} does not exist): run `{cell.command}` first, or use "
        f"--init scratch for a dense run without an ImageNet stage"
    )
