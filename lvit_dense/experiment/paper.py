"""The numbers of the paper's Tables D and E (Base size), as data.

IN-1K top-1 | COCO APb APb50 APb75 APm APm50 APm75 | ADE20K mIoU, multi-scale mIoU. The Softmax row quotes DeiT-B
and the plain-ViT baselines of ViT-Adapter (Chen et al., 2023).
"""

SOURCE = "Qin et al. 2026, Tables D and E"
COLUMNS = ("top1", "APb", "APb50", "APb75", "APm", "APm50", "APm75", "mIoU", "mIoU_ms")
SOFTMAX = (81.8, 42.9, 65.7, 46.8, 39.4, 62.6, 42.0, 46.1, 47.1)

# operator -> arm -> numbers in the order of COLUMNS
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "softmax": {"teacher": SOFTMAX},
    "relu": {
        "random": (76.5, 34.0, 56.5, 37.6, 32.1, 55.5, 34.4, 34.9, 35.7),
        "copy": (75.6, 33.3, 55.9, 37.1, 31.6, 55.0, 33.7, 35.2, 35.8),
        "mlpcopy": (80.2, 41.4, 63.9, 44.9, 36.5, 60.1, 38.7, 43.5, 44.4),
        "fullcopy": (80.8, 41.5, 64.1, 45.2, 36.7, 60.4, 39.2, 43.9, 44.6),
        "random+distill": (79.4, 36.2, 59.0, 40.3, 35.8, 59.2, 37.9, 40.7, 41.8),
        "copy+distill": (79.9, 36.9, 59.3, 40.7, 36.0, 59.6, 38.2, 41.5, 42.1),
        "mlpcopy+distill": (81.4, 42.2, 64.6, 45.9, 38.2, 62.0, 40.7, 45.2, 45.9),
        "fullcopy+distill": (82.0, 42.4, 64.9, 45.9, 39.0, 62.4, 41.3, 45.3, 46.4),
    },
    "ttt": {
        "random": (82.2, 36.4, 58.9, 40.3, 34.3, 57.7, 36.2, 35.1, 35.7),
        "copy": (81.0, 35.4, 58.1, 39.2, 33.5, 57.0, 35.9, 35.1, 36.2),
        "mlpcopy": (82.9, 42.9, 65.2, 46.5, 38.0, 61.5, 40.1, 44.3, 45.3),
        "fullcopy": (83.1, 43.1, 65.9, 47.0, 38.7, 62.3, 41.0, 45.2, 46.0),
        "random+distill": (82.3, 40.5, 63.0, 44.2, 37.4, 60.9, 39.5, 44.5, 45.5),
        "copy+distill": (82.2, 41.0, 63.6, 44.7, 38.1, 61.9, 40.3, 45.2, 46.2),
        "mlpcopy+distill": (83.0, 43.2, 65.7, 46.8, 39.1, 62.9, 41.5, 46.7, 47.5),
        "fullcopy+distill": (83.2, 43.3, 66.1, 47.6, 39.4, 63.1, 41.5, 47.1, 47.9),
    },
}


def numbers(operator: str) -> dict[str, dict[str, float]]:
    """Arm -> column -> number; empty for an operator that the tables do not have."""
    return {arm: dict(zip(COLUMNS, row, strict=True)) for arm, row in PAPER.get(operator, {}).items()}
