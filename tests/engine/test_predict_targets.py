"""tools/predict.py overwrites neither what it reads nor what it has just written."""

import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

from lvit_dense.engine.predict import check_targets, find_sources

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """Two pictures whose suffix is, and is not, that of the results."""
    for name in ("photo.png", "other.jpg"):
        Image.new("RGB", (8, 6), "red").save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("given", ["photo.png", "."])
def test_the_picture_beside_its_result_is_refused_before_the_checkpoint_is_looked_at(folder, given, monkeypatch):
    monkeypatch.chdir(folder)
    before = (folder / "photo.png").read_bytes()
    config = ROOT / "configs" / "upernet_relu_base.py"
    monkeypatch.setattr(sys, "argv", ["predict.py", str(config), "no/checkpoint.pth", given, "--out", "."])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "tools" / "predict.py"), run_name="__main__")
    message = str(end.value.code)
    assert message.startswith("error: photo.png is read") and "--out" in message and "\n" not in message
    assert (folder / "photo.png").read_bytes() == before


def test_a_result_that_is_another_source_is_refused(folder):
    def check(out, *names):
        check_targets(find_sources([str(folder / name) for name in names]), out)

    check(folder, "other.jpg")
    check(folder / "out", "photo.png", "other.jpg")
    Image.new("L", (8, 6)).save(folder / "other_labels.png")
    with pytest.raises(ValueError, match=r"other_labels\.png is read .* written for .*other\.jpg"):
        check(folder, "other.jpg", "other_labels.png")
    (folder / "link").symlink_to(folder)
    with pytest.raises(ValueError, match=r"photo\.png is read"):
        check(folder / "link", "photo.png")
    (folder / "clip.mp4").touch()
    with pytest.raises(ValueError, match=r"clip\.mp4 is read"):
        check(folder, "clip.mp4")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("x.jpg", "x.png"), ["x", "x_png"]),
        (("x.jpg", "x_labels.jpg"), ["x", "x_labels_jpg"]),
        (("x_labels.jpg", "x.png"), ["x_labels", "x_png"]),
        (("x.jpg", "x.png", "x_png_labels.jpg"), ["x", "x_png", "x_png_labels_jpg"]),
    ],
)
def test_no_two_sources_write_one_file(tmp_path, files, names):
    for name in files:
        (tmp_path / name).touch()
    assert [source.name for source in find_sources([str(tmp_path / name) for name in files])] == names


def test_label_maps_that_would_be_overwritten_all_the_same_are_refused(tmp_path):
    for name in ("x.jpg", "x_png_labels.jpg", "x.png"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"x_png_labels\.jpg and .*x\.png would both be written to x_png\.\*"):
        find_sources([str(tmp_path / name) for name in ("x.jpg", "x_png_labels.jpg", "x.png")])
