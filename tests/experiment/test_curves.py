"""Reading mmengine's scalars: epochs and iterations, sparse validation, resumed and killed runs."""

import json
from pathlib import Path

import pytest

from lvit_dense.experiment.curves import choose, draw, read_log, smooth, summary


def write(run: Path, stamp: str, lines: list[dict], tail: str = "") -> Path:
    file = run / stamp / "vis_data/scalars.json"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return file


def train(step: int, loss: float, **more) -> dict:
    return {"lr": 0.1, "loss": loss, "time": 0.5, "step": step, "iter": step, **more}


@pytest.fixture
def by_epoch(tmp_path):
    run = tmp_path / "maskrcnn_relu_tiny@random"
    lines = [train(10 * i, 5.0 - i, epoch=1 + (i - 1) // 2) for i in range(1, 5)]  # 2 lines an epoch
    write(run, "20260101_000000", [*lines, {"coco/bbox_mAP": 0.25, "step": 2}])
    return run


@pytest.fixture
def by_iteration(tmp_path):
    run = tmp_path / "upernet_relu_tiny@random"
    lines = [train(50, 3.0), train(100, 2.0), {"mIoU": 31.0, "step": 100}, train(150, 1.0), {"mIoU": 30.0, "step": 150}]
    write(run, "20260101_000000", lines)
    return run


def test_validation_by_epoch_stands_at_the_epochs_last_iteration(by_epoch):
    log = read_log(by_epoch)
    assert log.name == "maskrcnn_relu_tiny@random"
    assert (log.train["loss"].steps, log.train["loss"].values) == ([10, 20, 30, 40], [4.0, 3.0, 2.0, 1.0])
    assert (log.val["coco/bbox_mAP"].steps, log.val["coco/bbox_mAP"].values) == ([40], [0.25])
    assert "epoch" not in log.train and "step" not in log.val


def test_validation_by_iteration_stays(by_iteration):
    assert read_log(by_iteration).val["mIoU"].steps == [100, 150]
    assert read_log(by_iteration).val["mIoU"].best() == (100, 31.0)


def test_resumed_run_is_joined_and_a_torn_line_left_out(by_iteration):
    # killed at 170, resumed from the checkpoint of 100
    write(by_iteration, "20260102_000000", [train(150, 1.5), train(200, 0.5), {"mIoU": 40.0, "step": 200}], '{"lr": 0.')
    log = read_log(by_iteration)
    assert log.train["loss"].steps == [50, 100, 150, 200]
    assert log.train["loss"].values == [3.0, 2.0, 1.5, 0.5]
    assert log.val["mIoU"].steps == [100, 150, 200]
    one = read_log(by_iteration / "20260102_000000")
    assert one.name == "upernet_relu_tiny@random/20260102_000000" and one.train["loss"].steps == [150, 200]
    assert read_log(by_iteration / "20260102_000000/vis_data/scalars.json").name == one.name


def test_no_log_and_no_key(tmp_path, by_epoch):
    (tmp_path / "some.log").write_text("x")
    for path in (tmp_path / "nothing", tmp_path / "some.log"):
        with pytest.raises(FileNotFoundError, match=r"holds no TIMESTAMP/vis_data/scalars\.json"):
            read_log(path)
    with pytest.raises(KeyError, match=r"no key matches nix; logged: coco/bbox_mAP, loss, lr, time"):
        choose([read_log(by_epoch)], ["nix"])


def test_keys_and_summary(by_epoch, by_iteration):
    logs = [read_log(by_epoch), read_log(by_iteration)]
    assert choose(logs, []) == (["loss"], ["coco/bbox_mAP", "mIoU"])
    assert choose(logs, ["l*", "mIoU"]) == (["loss", "lr"], ["mIoU"])
    first, second = summary(logs)
    assert first == {
        "run": "maskrcnn_relu_tiny@random",
        "iterations": "40",
        "s/iteration": "0.500",
        "last loss": "1.0000",
        "coco/bbox_mAP": "0.25 (best 0.25 at 40)",
    }
    assert second["mIoU"] == "30 (best 31 at 100)"


def test_a_run_without_lines_yet(tmp_path):
    write(tmp_path / "run", "20260101_000000", [])
    log = read_log(tmp_path / "run")
    assert choose([log], []) == ([], []) and summary([log])[0]["iterations"] == "-"


def test_smoothing():
    assert smooth([1.0, 5.0, 2.0], 0.0) == [1.0, 5.0, 2.0]
    assert smooth([3.0] * 4, 0.9) == pytest.approx([3.0] * 4)
    assert smooth([1.0, 4.0], 0.5) == pytest.approx([1.0, (0.25 * 1 + 0.5 * 4) / 0.75])


def test_picture_has_a_panel_per_key(by_epoch, by_iteration, tmp_path):
    logs = [read_log(by_epoch), read_log(by_iteration)]
    draw(logs, choose(logs, []), tmp_path / "wide.png", share=0.5)
    draw(logs, choose(logs, ["loss"]), tmp_path / "narrow.png")
    from PIL import Image

    wide, narrow = (Image.open(tmp_path / f"{name}.png").size for name in ("wide", "narrow"))
    assert wide[0] == 3 * narrow[0] and wide[1] == narrow[1]
