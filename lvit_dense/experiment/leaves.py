"""The text of the leaf configs: one base, one operator, and for dense tasks the ImageNet run they start from."""

from lvit_dense.experiment.cell import TASKS, Cell, default_cell
from lvit_dense.experiment.paper import PAPER, expected

OPERATORS = ("softmax", "elu", "relu", "inline", "mhla", "ttt")
SIZES = ("tiny", "small", "base")
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
    """The text of one config."""
    backbone = [f"operator='{cell.operator}'"]
    if cell.task == "maskrcnn" and cell.operator == "softmax":
        backbone.append("window_size=14")
    if cell.upstream is not None:
        backbone.append(f"\n    transfer=dict(plan='pretrained', source='{cell.upstream.work_dir()}'),\n")
        text = f"model = dict(backbone=dict({', '.join(backbone[:-1])},{backbone[-1]}))\n"
    else:
        text = f"model = dict(backbone=dict({', '.join(backbone)}))\n"
    lines = [f"# {TITLES[cell.task]}, {cell.operator} attention, {cell.size.capitalize()}."]
    for arm in PAPER.get(cell.operator, {}):
        numbers = expected(cell.operator, cell.size, arm, cell.task)
        if numbers:
            lines.append(f"# Paper, {arm}: " + ", ".join(f"{name} {value}" for name, value in numbers.items()))
    arm = " --init mlpcopy --distill" if cell.task == "imagenet" and cell.operator != "softmax" else ""
    lines.append(f"# python tools/train.py configs/{cell.config_name}.py{arm}")
    return "\n".join(lines) + f"\n_base_ = './_base_/{cell.task}_{cell.size}.py'\n{text}"
