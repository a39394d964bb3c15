"""Maps of teacher and student side by side, the error of attention outputs, and the cost of distillation."""

import runpy
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from lvit_dense.experiment.routing import compare
from lvit_dense.experiment.suite import TOOLS
from lvit_dense.transfer import read_source
from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD
from lvit_dense.vit import ViT

ARCH, SIDE = (24, 4, 3), 40


@pytest.fixture
def picture(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


@pytest.fixture
def save(tmp_path):
    """Save a ViT as a run of ours would; return its file and itself."""

    def write(operator, **arguments):
        torch.manual_seed(len(operator))
        vit = ViT(ARCH, operator, img_size=SIDE, **{"patch_size": 8, **arguments}).eval()
        file = tmp_path / f"{operator}.pth"
        state = {f"vit.{name}": value for name, value in vit.state_dict().items()}
        torch.save({"meta": {"lvit_dense": vit.facts}, "state_dict": state}, file)
        return str(file), vit

    return write


def maps_of(vit, images):
    tokens, grid = vit.embed(images)
    found = []
    for block in vit.blocks:
        found.append(block.attn.operator.attention_matrix(block.attn.inputs(block.norm1(tokens), grid, vit.prefix)))
        tokens = block(tokens, grid, vit.prefix)
    return found


def test_maps_are_rows_of_the_attention_matrix(picture, save):
    (teacher, t), (student, s) = save("softmax"), save("relu")
    routing = compare(picture, read_source(teacher), read_source(student), queries=[(1, 2), (4, 0)], blocks=[3, 1])
    assert (tuple(routing.grid), routing.blocks, routing.operators) == ((5, 5), [1, 3], ("softmax", "relu"))
    pixels = torch.from_numpy(routing.picture.astype(np.float32)).permute(2, 0, 1) / 255
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        for vit, found in ((t, routing.teacher), (s, routing.student)):
            expected = maps_of(vit, ((pixels - mean) / std)[None])
            for place, block in enumerate(routing.blocks):
                for index, (row, column) in enumerate(routing.queries):
                    whole = expected[block][0].mean(0)[1 + 5 * row + column, 1:].reshape(5, 5)
                    torch.testing.assert_close(found[place][index], whole, rtol=1e-3, atol=1e-4)
    assert len(routing.errors) == 4 and min(routing.errors) > 0


def test_a_student_equal_to_its_teacher_has_no_error(picture, save):
    source = read_source(save("softmax")[0])
    routing = compare(picture, source, source)
    assert max(routing.errors) < 1e-10
    assert all(torch.equal(a, b) for a, b in zip(routing.teacher, routing.student))


def test_a_teacher_of_another_patch_size_is_asked_at_the_same_place(picture, save):
    teacher, student = read_source(save("softmax", patch_size=4)[0]), read_source(save("ttt")[0])
    routing = compare(picture, teacher, student, queries=[(4, 2)])
    assert routing.teacher[0].shape == (1, 10, 10) and routing.student == [None] * 4


def test_each_model_sees_the_picture_in_its_own_statistics(picture, save):
    file, vit = save("softmax")
    source = read_source(file)
    half = replace(source, facts=source.facts._replace(pixel_mean=(0.5,) * 3, pixel_std=(0.5,) * 3))
    imagenet = replace(source, facts=source.facts._replace(pixel_mean=IMAGENET_MEAN, pixel_std=IMAGENET_STD))
    routing, plain = compare(picture, imagenet, half, blocks=[3]), compare(picture, imagenet, imagenet, blocks=[3])
    torch.testing.assert_close(routing.teacher[0], plain.teacher[0], rtol=1e-3, atol=1e-5)
    pixels = torch.from_numpy(routing.picture.astype(np.float32)).permute(2, 0, 1)[None] / 255
    (row, column), *_ = routing.queries
    with torch.no_grad():
        expected = maps_of(vit, (pixels - 0.5) / 0.5)[3][0].mean(0)[1 + 5 * row + column, 1:].reshape(5, 5)
    torch.testing.assert_close(routing.student[0][0], expected, rtol=1e-3, atol=1e-4)
    assert max(routing.errors) > 1e-4 > max(plain.errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": [(5, 0)]}, "5x5 grid, got 5,0"),
        ({"blocks": [4]}, r"blocks are some of 0\.\.3, got 4"),
    ],
)
def test_what_is_not_there_is_named(options, message, picture, save):
    teacher, student = read_source(save("softmax")[0]), read_source(save("relu")[0])
    with pytest.raises(ValueError, match=message):
        compare(picture, teacher, student, **options)


def run(tool, *arguments):
    argv, sys.argv = sys.argv, [tool, *map(str, arguments)]
    try:
        runpy.run_path(str(TOOLS / tool), run_name="__main__")
    finally:
        sys.argv = argv


def test_the_tool_writes_a_picture_and_says_what_has_no_map(picture, save, tmp_path, capsys):
    out = tmp_path / "sub" / "routing.png"
    run("visualize_routing.py", picture, "--teacher", save("softmax")[0], "--student", save("ttt")[0], "--out", out)
    printed = capsys.readouterr().out
    assert "block 3: output error" in printed and "ttt attention has no map" in printed
    with Image.open(out) as image:
        assert min(image.size) > 400
    with pytest.raises(SystemExit) as end:
        run("visualize_routing.py", picture, "--teacher", "gone.pth", "--student", "gone.pth", "--out", out)
    assert "no checkpoint at 'gone.pth'" in str(end.value)


def test_the_cost_of_distillation_is_a_table_with_a_limit(capsys):
    flags = ["--operators", "relu", "--img-size", 32, "--batch-size", 1, "--rounds", 2, "--limit"]
    threads = torch.get_num_threads()
    for limit, code in ((1000, 0), (0.001, 1)):
        with pytest.raises(SystemExit) as end:
            run("distill_cost.py", *flags, limit)
        assert int(end.value.code) == code
    torch.set_num_threads(threads)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| relu | ") and len(lines) == 6
