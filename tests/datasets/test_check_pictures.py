"""Files that are no sound 8-bit picture: named by the check and by the loader; every 8-bit mode reads as RGB."""

import functools
import http.server
import io
import threading

import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile
from mmengine.registry import TRANSFORMS
from PIL import Image

from lvit_dense.datasets.checks.finding import DataError
from lvit_dense.datasets.checks.pictures import check_picture, is_cut_off
from lvit_dense.datasets.loading import LoadPicture

RGB = Image.fromarray((np.random.default_rng(0).random((6, 8, 3)) * 255).astype(np.uint8)).resize((40, 30))


def encode(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(RGB, "JPEG", exif=exif)


JPEG, PNG = encode(RGB, "JPEG"), encode(RGB, "PNG")
DEEP = np.linspace(0, 65535, 20 * 20).reshape(20, 20).astype(np.uint16)
BAD = {
    "empty": (b"", "empty-file", "0 bytes"),
    "text": (b"<html>not found</html>", "undecodable", "22 bytes that begin with b'<html>not fo'"),
    "half a jpeg": (JPEG[:-200], "cut-off", "ends early after"),
    "half a png": (PNG[: len(PNG) // 2], "cut-off", "ends early after"),
    "16 bits": (encode(Image.fromarray(DEEP), "PNG"), "deep-picture", "mode I;16"),
    "float": (encode(Image.fromarray(DEEP.astype(np.float32)), "TIFF"), "deep-picture", "mode F"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_picture_is_named_by_check_and_loader(tmp_path, name):
    content, kind, value = BAD[name]
    file = tmp_path / "picture.jpg"
    file.write_bytes(content)
    (finding,) = check_picture(str(file))
    assert finding.kind == kind and finding.fatal and value in finding.value and finding.picture == str(file)
    with pytest.raises(DataError, match=r"picture\.jpg: .*; expected .*\. [A-Z]") as error:
        LoadPicture().transform({"img_path": str(file)})
    assert error.value.findings == [finding]


def test_missing_picture_and_folder_in_its_place(tmp_path):
    assert check_picture(str(tmp_path / "no.jpg"))[0].value == "no such file or directory"
    assert check_picture(str(tmp_path))[0].kind == "missing-file"
    with pytest.raises(DataError, match=r"no\.jpg: no such file"):
        LoadPicture().transform({"img_path": str(tmp_path / "no.jpg")})
    assert LoadPicture(ignore_empty=True).transform({"img_path": str(tmp_path / "no.jpg")}) is None


def test_16_bit_colour_png_is_refused(tmp_path):
    cv2 = pytest.importorskip("cv2")
    cv2.imwrite(str(tmp_path / "a.png"), np.stack([DEEP] * 3, -1))
    (finding,) = check_picture(str(tmp_path / "a.png"))  # Pillow calls its mode RGB
    assert finding.kind == "deep-picture" and "RGB;16" in finding.value


@pytest.mark.parametrize(
    ("mode", "form"), [("L", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("1", "PNG"), ("RGBA", "PNG"), ("CMYK", "JPEG")]
)
def test_every_8_bit_mode_reads_as_rgb(tmp_path, mode, form):
    image = RGB.convert(mode)
    file = tmp_path / "picture"
    file.write_bytes(encode(image, form))
    results = LoadPicture().transform({"img_path": str(file)})
    expected = np.asarray(Image.open(file).convert("RGB")).astype(int)
    assert np.abs(results["img"][..., ::-1] - expected).max() <= 1
    assert results["img_shape"] == results["ori_shape"] == (30, 40)
    (finding,) = check_picture(str(file))
    assert finding.kind == "colour-mode" and not finding.fatal


def test_sound_picture_has_mmcvs_pixels_and_our_loader_takes_its_place(tmp_path):
    (tmp_path / "a.jpg").write_bytes(JPEG)
    ours = TRANSFORMS.build({"type": "LoadImageFromFile"})
    assert isinstance(ours, LoadPicture)
    theirs = LoadImageFromFile().transform({"img_path": str(tmp_path / "a.jpg")})
    mine = ours.transform({"img_path": str(tmp_path / "a.jpg")})
    assert theirs.keys() == mine.keys() and (theirs["img"] == mine["img"]).all()
    assert LoadPicture(to_float32=True).transform({"img_path": str(tmp_path / "a.jpg")})["img"].dtype == np.float32


@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 30)), (6, (30, 40)), (8, (30, 40)), (3, (40, 30))])
def test_exif_orientation_decides_the_size(tmp_path, orientation, size):
    file = tmp_path / "a.jpg"
    file.write_bytes(turned(orientation))
    assert check_picture(str(file), size, "x.json") == []
    (finding,) = check_picture(str(file), size[::-1], "x.json")
    assert finding.kind == "size-differs" and f"is {size[0]}x{size[1]}" in finding.value
    assert ("EXIF orientation" in finding.value) == (orientation > 1)
    assert LoadPicture().transform({"img_path": str(file)})["img_shape"] == size[::-1]


def test_end_marks():
    thumbnail = b"\xff\xd8\xff\xe1" + JPEG + JPEG[2:-2]  # an embedded picture's end mark comes before the last data
    assert is_cut_off(thumbnail) and not is_cut_off(thumbnail + b"\xff\xd9")
    assert not is_cut_off(JPEG) and not is_cut_off(PNG) and is_cut_off(JPEG[:-2]) and is_cut_off(PNG[:-12])
    assert not is_cut_off(JPEG + b"trailing bytes")


def test_loader_looks_at_the_label_file_of_segmentation_data(tmp_path):
    (tmp_path / "a.jpg").write_bytes(JPEG)
    results = {"img_path": str(tmp_path / "a.jpg"), "seg_map_path": str(tmp_path / "a.png"), "reduce_zero_label": True}
    with pytest.raises(DataError, match=r"a\.png: no such file"):
        LoadPicture().transform(dict(results))
    for array, message in ((np.full((30, 40, 3), 7, np.uint8), "mode RGB"), (DEEP, "65535 would become 255")):
        Image.fromarray(array).save(tmp_path / "a.png")
        with pytest.raises(DataError, match=rf"a\.png: .*{message}"):
            LoadPicture().transform(dict(results))
    Image.fromarray(np.full((30, 40), 7, np.uint8)).save(tmp_path / "a.png")
    assert LoadPicture().transform(dict(results))["img_shape"] == (30, 40)
    detection = {"img_path": results["img_path"], "seg_map_path": None}
    assert LoadPicture().transform(detection)["img_shape"] == (30, 40)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serves ``tmp_path`` over HTTP; gives the address."""
    monkeypatch.setenv("no_proxy", "*")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_pictures_and_labels_come_from_any_backend_of_mmengine(tmp_path, server):
    (tmp_path / "a.jpg").write_bytes(JPEG)
    Image.fromarray(np.full((30, 40), 7, np.uint8)).save(tmp_path / "a.png")
    local = LoadPicture().transform({"img_path": str(tmp_path / "a.jpg")})["img"]
    remote = {"img_path": f"{server}/a.jpg", "seg_map_path": f"{server}/a.png", "reduce_zero_label": True}
    assert (LoadPicture().transform(dict(remote))["img"] == local).all()
    file = {key: f"file://{tmp_path}/a.{end}" for key, end in (("img_path", "jpg"), ("seg_map_path", "png"))}
    loader = LoadPicture(backend_args={"backend": "http"})
    assert (loader.transform({**file, "reduce_zero_label": True})["img"] == local).all()


def test_errors_of_other_backends_name_the_address(tmp_path, server):
    (tmp_path / "a.jpg").write_bytes(JPEG)
    with pytest.raises(DataError, match=r"http://127.*/no\.jpg: http error 404"):
        LoadPicture().transform({"img_path": f"{server}/no.jpg"})
    with pytest.raises(DataError, match=r"http://127.*/no\.png: http error 404"):
        LoadPicture().transform(
            {"img_path": f"{server}/a.jpg", "seg_map_path": f"{server}/no.png", "reduce_zero_label": True}
        )
    with pytest.raises(DataError, match=r"file://.*/a\.jpg: mmengine has no file backend for 'file'.*backend_args"):
        LoadPicture().transform({"img_path": f"file://{tmp_path}/a.jpg"})
