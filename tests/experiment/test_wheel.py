"""The wheel, built and installed as users do, away from the clone: its .mim folder serves OpenMMLab's mim."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lvit_dense.experiment.leaves import leaves

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("lvit_dense", "configs", "tools")
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "model-index.yml")
BUILD_MODELS = """
import sys
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
for name in sys.argv[2:]:
    cfg = Config.fromfile(f"{sys.argv[1]}/{name}.py")  # custom_imports fills the registries
    cfg.model.backbone.arch = (32, 4, 2)
    cfg.model.backbone.pop("transfer", None)
    if "neck" in cfg.model:
        cfg.model.neck.in_channels = [32] * 4
    for head in ("decode_head", "auxiliary_head"):
        if head in cfg.model:
            cfg.model[head].update(in_channels=[32] * 4 if head == "decode_head" else 32, channels=16)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(cfg.model)
    print(name, type(model).__name__, sum(type(module).__name__ == "ViT" for module in model.modules()))
import lvit_dense
from lvit_dense.experiment.presets import names
print(names("recipe")[-1], names("data")[0])
print(lvit_dense.__file__)
"""


def run(*command, cwd, path=""):
    environment = {**os.environ, "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what a build reads, so that it leaves nothing in the clone."""
    folder = tmp_path_factory.mktemp("source")
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    flags = ("--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir")
    run(*pip, "wheel", *flags, str(folder / "wheels"), str(source), cwd=folder)
    (wheel,) = (folder / "wheels").glob("lvit_dense-*.whl")
    run(
        *pip,
        "install",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--target",
        str(folder / "site"),
        str(wheel),
        cwd=folder,
    )
    return folder / "site"


def test_it_ships_every_config_and_tool_once(installed):
    mim = installed / "lvit_dense" / ".mim"
    for folder, patterns in (("configs", ("*.py", "*.yml")), ("tools", ("*.py", "*.sh"))):
        wanted = {file.relative_to(ROOT) for pattern in patterns for file in (ROOT / folder).rglob(pattern)}
        found = {file.relative_to(mim) for file in (mim / folder).rglob("*") if file.is_file()}
        assert found == wanted and len(wanted) > 20
        assert all((mim / file).read_bytes() == (ROOT / file).read_bytes() for file in wanted)
    beside = {file.name for file in installed.iterdir()}
    assert all(name == "lvit_dense" or name.endswith(".dist-info") for name in beside), beside


def test_mims_lookup_finds_the_configs(installed):
    """What ``mim search`` and ``mim train lvit_dense NAME`` do: the distribution, its folder, .mim, the model index."""
    (distribution,) = importlib.metadata.distributions(name="lvit_dense", path=[str(installed)])
    mim = Path(str(distribution.locate_file("lvit_dense"))) / ".mim"
    index = yaml.safe_load((mim / "model-index.yml").read_text())
    models = [model for part in index["Import"] for model in yaml.safe_load((mim / part).read_text())["Models"]]
    assert {Path(model["Config"]).name for model in models} == set(leaves())
    for model in models:
        (found,) = mim.rglob(Path(model["Config"]).name)  # mim train takes a name only if it is there once
        assert found == mim / model["Config"]
    assert (mim / "tools" / "train.py").is_file() and (mim / "tools" / "test.py").is_file()


def test_an_editable_installation_has_no_copies(source, tmp_path):
    """``pip install -e``, as the Makefile does, keeps using the clone's own configs and tools."""
    code = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    run("-c", code, cwd=source)
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(next(tmp_path.glob("*.whl")))], capture_output=True, text=True
    ).stdout
    assert "__editable__" in names and ".mim" not in names and not (source / "lvit_dense" / ".mim").exists()


@pytest.mark.slow
def test_models_are_built_from_the_wheels_configs_in_any_folder(installed, tmp_path):
    configs = installed / "lvit_dense" / ".mim" / "configs"
    out = run("-c", BUILD_MODELS, str(configs), "imagenet_elu_tiny", "maskrcnn_relu_tiny", "upernet_inline_tiny",
              cwd=tmp_path, path=installed)  # fmt: skip
    assert out.splitlines()[-5:-1] == [
        "imagenet_elu_tiny LinearViTClassifier 1",
        "maskrcnn_relu_tiny MaskRCNN 1",
        "upernet_inline_tiny EncoderDecoder 1",
        "xu2024 cifar10",
    ]
    assert out.splitlines()[-1] == str(installed / "lvit_dense" / "__init__.py")
