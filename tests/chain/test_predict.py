"""tools/predict.py and the inferencers of mmdet and mmseg on a detector and a segmentor of the chain."""

import json
import sys

import cv2
import numpy as np
import pytest
from PIL import Image

from lvit_dense.datasets.demo import CLASSES, SEGMENTATION_CLASSES
from lvit_dense.transfer import newest_checkpoint
from tests.chain.conftest import DETECTOR, SEGMENTOR, TOOLS


@pytest.fixture
def run(chain, detector, segmentor):
    """A function that predicts, and returns the folder of the run that was used."""

    def predict(cell, *inputs, out, code=0, options=()):
        folder = detector if cell is DETECTOR else segmentor
        flags = ["--out", out, "--score-thr", "0", "--device", "cpu"]
        flags += ["--cfg-options", *options] if options else []
        with pytest.raises(SystemExit) as end:
            chain.call([sys.executable, TOOLS / "predict.py", chain.config(cell), folder, *inputs, *flags])
        assert end.value.code == code if isinstance(code, int) else code in str(end.value.code)
        return folder

    return predict


@pytest.fixture
def pictures(chain, tmp_path):
    """A folder with a good, a grey and two unreadable pictures, one of them below."""
    folder = tmp_path / "pictures"
    (folder / "below").mkdir(parents=True)
    random = np.random.default_rng(0)
    Image.fromarray(random.integers(0, 256, (50, 70, 3), dtype=np.uint8)).save(folder / "good.png")
    Image.fromarray(random.integers(0, 256, (33, 40), dtype=np.uint8)).save(folder / "below" / "grey.jpg")
    (folder / "empty.jpg").touch()
    (folder / "below" / "text.jpg").write_text("<html>")
    (folder / "notes.txt").write_text("no picture")
    return folder


def read(path):
    return json.loads(path.read_text())


def test_a_detector_writes_pictures_and_json_and_goes_on_after_bad_ones(run, pictures, tmp_path, capsys):
    out = tmp_path / "out"
    run(DETECTOR, pictures, out=out, code=1)
    captured = capsys.readouterr()
    assert captured.err.count("error: ") == 2 and "empty.jpg" in captured.err and "text.jpg" in captured.err
    assert "2 of 4 predicted" in captured.out
    written = sorted(str(path.relative_to(out)) for path in out.rglob("*.*"))
    assert written == ["below/grey.json", "below/grey.png", "good.json", "good.png"]
    data = read(out / "good.json")
    assert (data["height"], data["width"]) == (50, 70) == Image.open(out / "good.png").size[::-1]
    scores = [entry["score"] for entry in data["objects"]]
    assert scores == sorted(scores, reverse=True) and scores
    for entry in data["objects"]:
        assert entry["class"] in CLASSES and entry["mask"]["size"] == [50, 70] and len(entry["box"]) == 4


def test_a_segmentor_writes_label_maps_and_shares(run, pictures, tmp_path):
    out = tmp_path / "out"
    run(SEGMENTOR, pictures / "good.png", pictures / "below" / "grey.jpg", out=out)
    labels = np.asarray(Image.open(out / "grey_labels.png"))
    assert labels.shape == (33, 40) and labels.max() < len(SEGMENTATION_CLASSES)
    shares = read(out / "grey.json")["classes"]
    assert shares[SEGMENTATION_CLASSES[np.bincount(labels.ravel()).argmax()]] == max(shares.values())
    assert sum(shares.values()) == pytest.approx(1, abs=1e-3)


def test_a_video_gives_a_video_and_an_entry_per_frame(run, tmp_path):
    video, out = tmp_path / "clip.avi", tmp_path / "out"
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*"MJPG"), 5, (64, 48))
    for value in (0, 100, 200):
        writer.write(np.full((48, 64, 3), value, np.uint8))
    writer.release()
    run(SEGMENTOR, video, out=out)
    assert [entry["frame"] for entry in read(out / "clip.json")["frames"]] == [0, 1, 2]
    assert cv2.VideoCapture(str(out / "clip.mp4")).read()[1].shape == (48, 64, 3)


def test_what_is_wrong_on_the_command_line_is_said_before_the_model_is_loaded(run, chain, pictures, tmp_path):
    run(DETECTOR, pictures, tmp_path / "missing.jpg", out=tmp_path, code="error: no picture, folder or video")
    run(DETECTOR, pictures / "notes.txt", out=tmp_path, code="expected a picture (.jpg")
    (tmp_path / "none").mkdir()
    run(DETECTOR, tmp_path / "none", out=tmp_path, code="no pictures or videos in")


def test_a_checkpoint_of_another_model_is_refused(run, pictures, tmp_path):
    narrow = ["model.decode_head.channels=8"]
    run(SEGMENTOR, pictures, out=tmp_path / "out", code="the checkpoint does not fit the model", options=narrow)
    assert not (tmp_path / "out").exists()


def test_mmdets_inferencer_takes_our_config_and_checkpoint(run, chain, pictures, tmp_path):
    from mmdet.apis import DetInferencer

    folder = run(DETECTOR, pictures / "good.png", out=tmp_path / "ours")
    inferencer = DetInferencer(str(chain.config(DETECTOR)), str(newest_checkpoint(folder)), "cpu", show_progress=False)
    result = inferencer(str(pictures / "good.png"), out_dir=str(tmp_path / "theirs"), no_save_pred=False)
    (prediction,) = result["predictions"]
    ours = read(tmp_path / "ours" / "good.json")["objects"]
    assert sorted(prediction["scores"]) == pytest.approx(sorted(entry["score"] for entry in ours))
    assert (tmp_path / "theirs" / "vis" / "good.png").exists() and (tmp_path / "theirs/preds/good.json").exists()


def test_mmsegs_inferencer_takes_our_config_and_checkpoint(run, chain, pictures, tmp_path):
    from mmseg.apis import MMSegInferencer

    folder = run(SEGMENTOR, pictures / "good.png", out=tmp_path / "ours")
    inferencer = MMSegInferencer(
        str(chain.config(SEGMENTOR)), str(newest_checkpoint(folder)), device="cpu", show_progress=False
    )
    labels = inferencer(str(pictures / "good.png"), out_dir=str(tmp_path / "theirs"))["predictions"]
    assert np.array_equal(labels, np.asarray(Image.open(tmp_path / "ours" / "good_labels.png")))
    assert inferencer.model.dataset_meta["classes"] == SEGMENTATION_CLASSES


def test_names_of_results_do_not_collide(tmp_path):
    from lvit_dense.engine.predict import find_sources

    for name in ("a/x.jpg", "a/x.png", "b/x.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [source.name for source in find_sources([str(tmp_path / "a")])] == ["x", "x_png"]
    assert [source.name for source in find_sources([str(tmp_path)])] == ["a/x", "a/x_png", "b/x"]
    with pytest.raises(ValueError, match=r"would both be written to x_jpg\.\*"):
        find_sources([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "b" / "x.jpg")])
