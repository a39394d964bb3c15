"""A tiny copy of the demo's chain, run through the command-line tools, in this process where possible."""

import runpy
import sys
import time
from pathlib import Path

import pytest

from lvit_dense.datasets.demo import CLASSES, PALETTE, SEGMENTATION_CLASSES, SEGMENTATION_PALETTE, DemoSizes, write_demo
from lvit_dense.experiment import small_data
from lvit_dense.experiment.cell import Cell
from lvit_dense.experiment.small_data import Classes, Schedule
from lvit_dense.experiment.suite import Suite

TOOLS = Path(__file__).resolve().parents[2] / "tools"
WIDTH = 32
TEACHER = Cell("imagenet", "softmax", "tiny")
STUDENT = Cell("imagenet", "relu", "tiny", "mlpcopy", distill=True)
DETECTOR = Cell("maskrcnn", "relu", "tiny", "mlpcopy", distill=True)
SEGMENTOR = Cell("upernet", "relu", "tiny", "mlpcopy", distill=True)


class Chain(Suite):
    """A suite whose steps are called one by one."""

    def run(self, command):
        """Run train.py or test.py as a user would, without the cost of a new process."""
        time.sleep(1.1)  # mmengine names a run by the second, and two of one name in one process share their log
        self.call(command)

    def call(self, command):
        """Run a tool that makes no mmengine run."""
        argv, sys.argv = sys.argv, [str(part) for part in command[1:]]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        finally:
            sys.argv = argv

    def train(self, cell, *flags):
        self.run([*self.train_command(cell), *flags])
        return self.work_dir(cell)

    def test(self, cell, *flags):
        self.run([*self.test_command(cell), *flags])


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    root = tmp_path_factory.mktemp("chain")
    data = root / "data"
    write_demo(
        data, DemoSizes(train_pictures=6, val_pictures=2, train_scenes=8, val_scenes=4, picture=64, scene=(96, 64))
    )
    shapes, segments = Classes(CLASSES, PALETTE), Classes(SEGMENTATION_CLASSES, SEGMENTATION_PALETTE)
    names = {
        split: {"ann_file": f"annotations/instances_{split}2017.json", "img": f"{split}2017/"}
        for split in ("train", "val")
    }
    ade = data / "ade" / "ADEChallengeData2016"
    options = {
        "imagenet": small_data.imagenet(data / "imagenet", shapes, 64, Schedule(2, 1, 1e-3, 12), crop=(0.5, 1.0)),
        "maskrcnn": small_data.coco(data / "coco", shapes, Schedule(2, 1, 1e-3, 2), (96, 64), WIDTH, 16, names),
        "upernet": small_data.ade20k(ade, segments, Schedule(4, 1, 1e-3, 2), 64, 64, WIDTH, 16),
    }
    suite = Chain(
        root / "runs", (TEACHER, STUDENT, DETECTOR, SEGMENTOR), str(TEACHER.work_dir(root / "runs")), options,
        {"arch": [WIDTH, 4, 2], "img_size": 64, "drop_path_rate": 0.0},
    )  # fmt: skip
    suite.write_configs()
    return suite


@pytest.fixture(scope="session")
def teacher(chain):
    return chain.train(TEACHER)


@pytest.fixture(scope="session")
def student(chain, teacher):
    return chain.train(STUDENT)


@pytest.fixture(scope="session")
def detector(chain, student):
    return chain.train(DETECTOR)


@pytest.fixture(scope="session")
def segmentor(chain, student):
    return chain.train(SEGMENTOR)
