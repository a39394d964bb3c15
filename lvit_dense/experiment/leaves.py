"""The text of the leaf configs: one base, one operator, and for dense tasks the ImageNet run they start from."""

from lvit_dense.experiment.cell import TASKS, Cell, default_cell
from lvit_dense.experiment.metrics import METRICS
from lvit_dense.experiment.reproduction import expectations

OPERATORS = ("softmax", "elu", "relu", "inline", "mhla", "ttt")
SIZES = ("tiny", "small", "base")
OFFICIAL_DEIT = "timm:deit_{}_patch16_224.fb_in1k"
TITLES = {
    "imagenet": "ImageNet-1K classification (the paper's Table C recipe)",
    "maskrcnn": "Mask R-CNN 1x on COCO",
    "upernet": "UperNet 160k on ADE20K",
}


def leaves() -> dict[str, str]:
    """File name -> text of every leaf config."""
    cells = [default_cell(task, operator, size) for task in TASKS for operator in OPERATORS for size in SIZES]
    return {f"{cell.config_name}.py": leaf(cell) for cell in cells}


def leaf(cell: Cell) -> str:
    """The text of one config, formatted as ruff formats it."""
    lines = [f"# {TITLES[cell.task]}, {cell.operator} attention, {cell.size.capitalize()}."]
    for arm, numbers in _expected_by_arm(cell).items():
        lines.append(f"# Paper, {arm}: " + ", ".join(f"{name} {value}" for name, value in numbers.items()))
    arm = " --init mlpcopy --distill" if cell.task == "imagenet" and cell.operator != "softmax" else ""
    lines.append(f"# python tools/train.py configs/{cell.config_name}.py{arm}")
    lines.append(f'_base_ = "./_base_/{cell.task}_{cell.size}.py"')
    if cell.task == "imagenet":
        return "\n".join([*lines, f'model = dict(backbone=dict(operator="{cell.operator}"))']) + "\n"
    settings = [f'operator="{cell.operator}"']
    if cell.upstream is not None:
        settings.append(f'transfer=dict(plan="pretrained", source="{cell.upstream.work_dir()}")')
    else:
        lines.append(f'teacher = "{OFFICIAL_DEIT.format(cell.size)}"')
        settings.append('transfer=dict(plan="fullcopy", source=teacher)')
    if cell.task == "maskrcnn" and cell.operator == "softmax":
        settings.append("window_size=14")
    inner = "".join(f"        {setting},\n" for setting in settings)
    return "\n".join(lines) + f"\nmodel = dict(\n    backbone=dict(\n{inner}    )\n)\n"


def _expected_by_arm(cell: Cell) -> dict[str, dict[str, float]]:
    """Every number of the paper's tables for a config, by what follows the ``@`` in a run's name."""
    found = expectations(cell.config_name)
    runs = sorted(found, key=lambda run: (run.distill, run.teacher != ""))
    return {
        run.name.partition("@")[2]: {column: found[run][column][0] for column in METRICS if column in found[run]}
        for run in runs
    }
