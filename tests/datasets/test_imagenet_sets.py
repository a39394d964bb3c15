"""Transfer sets and out-of-distribution test sets, on tiny folders in their archives' layouts."""

import json
import pickle

import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image
from scipy.io import savemat
from timm.data import ImageNetInfo

from lvit_dense.datasets.checks import DataError, quick_check
from lvit_dense.datasets.checks.run import check
from lvit_dense.datasets.imagenet import ImageNetFolders, TimmDataset
from lvit_dense.datasets.torchvision_sets import SETS
from lvit_dense.engine.subset_accuracy import SubsetAccuracy
from lvit_dense.experiment.launch import load_config
from lvit_dense.experiment.suite import CONFIGS

TRANSFORM = {"input_size": 32, "crop_pct": 1.0}
WNIDS = ImageNetInfo().label_names()


def picture(path, value, size=(32, 32)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, value, value)).save(path)


def write_cifar10(root):
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for index, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        content = {"data": np.full((2, 3072), index, np.uint8), "labels": [index, 9]}
        (folder / name).write_bytes(pickle.dumps(content))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class {i}" for i in range(10)]}))
    return 10, 2


def write_cifar100(root):
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for name, count in (("train", 3), ("test", 2)):
        content = {"data": np.zeros((count, 3072), np.uint8), "fine_labels": list(range(count))}
        (folder / name).write_bytes(pickle.dumps(content))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [f"class {i}" for i in range(100)]}))
    return 3, 2


def write_stl10(root):
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    for split, count in (("train", 2), ("test", 3), ("unlabeled", 1)):
        np.zeros((count, 3, 96, 96), np.uint8).tofile(folder / f"{split}_X.bin")
        np.arange(1, count + 1, dtype=np.uint8).tofile(folder / f"{split}_y.bin")
    return 2, 3


def write_food101(root):
    folder = root / "food-101"
    splits = {"train": ["1", "2"], "test": ["3"]}
    for split, numbers in splits.items():
        listed = {kind: [f"{kind}/{number}" for number in numbers] for kind in ("apple_pie", "waffles")}
        (folder / "meta").mkdir(parents=True, exist_ok=True)
        (folder / "meta" / f"{split}.json").write_text(json.dumps(listed))
        for files in listed.values():
            for file in files:
                picture(folder / "images" / f"{file}.jpg", 9)
    return 4, 2


def write_flowers102(root):
    folder = root / "flowers-102"
    for number in range(1, 7):
        picture(folder / "jpg" / f"image_{number:05d}.jpg", 9)
    savemat(folder / "setid.mat", {"trnid": [[5, 6]], "valid": [[4]], "tstid": [[1, 2, 3]]})
    savemat(folder / "imagelabels.mat", {"labels": [[1, 2, 3, 4, 102, 6]]})
    return 2, 3


def write_pets(root):
    folder = root / "oxford-iiit-pet"
    for split, names in (("trainval", ["Abyssinian_1", "pug_2"]), ("test", ["pug_3"])):
        (folder / "annotations").mkdir(parents=True, exist_ok=True)
        lines = [f"{name} {1 if name.startswith('A') else 2} 1 1" for name in names]
        (folder / "annotations" / f"{split}.txt").write_text("\n".join(lines) + "\n")
        for name in names:
            picture(folder / "images" / f"{name}.jpg", 9)
    return 2, 1


WRITERS = {
    "cifar10": write_cifar10,
    "cifar100": write_cifar100,
    "stl10": write_stl10,
    "food101": write_food101,
    "flowers102": write_flowers102,
    "pets": write_pets,
}


@pytest.fixture
def any_checksum(monkeypatch):
    """torchvision compares checksums of the real archives; the pictures here are made up."""
    for module in ("cifar", "stl10", "flowers102"):
        monkeypatch.setattr(f"torchvision.datasets.{module}.check_integrity", lambda *_: True)


def small(name, root):
    """The config of a transfer set on data at ``root``."""
    cfg = load_config(str(CONFIGS / "imagenet_relu_tiny.py"), None, data=name)
    for split in ("train", "val", "test"):
        cfg[f"{split}_dataloader"].dataset.root = str(root)
    return cfg


def build(settings):
    return TimmDataset(**{key: value for key, value in settings.items() if key != "type"})


@pytest.mark.parametrize("name", WRITERS)
def test_a_transfer_set_reads_its_training_and_test_split_in_its_archives_layout(name, tmp_path, any_checksum):
    trained, tested = WRITERS[name](tmp_path)
    cfg = small(name, tmp_path)
    assert quick_check(cfg, ("train", "val", "test")) == []
    train, val = (build(cfg[f"{split}_dataloader"].dataset) for split in ("train", "val"))
    assert (len(train), len(val)) == (trained, tested)
    for data in (train, val):
        sample = data[len(data) - 1]
        assert sample["inputs"].shape == (3, 224, 224) and sample["inputs"].dtype == torch.float32
        assert 0 <= sample["targets"] < cfg.model.num_classes
    assert torch.equal(val[0]["inputs"], val[0]["inputs"])


def test_flowers_are_trained_on_the_training_split_alone(tmp_path, any_checksum):
    write_flowers102(tmp_path)
    train = build(small("flowers102", tmp_path).train_dataloader.dataset)
    assert [train[i]["targets"] for i in range(2)] == [101, 5]


@pytest.mark.parametrize("name", WRITERS)
def test_missing_data_is_one_line_with_layout_and_switch_and_nothing_is_downloaded(name, tmp_path, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("something was downloaded"))
    cfg = small(name, tmp_path / "nowhere")
    folder = SETS[cfg.train_dataloader.dataset.name].folder
    for failing in (lambda: quick_check(cfg), lambda: build(cfg.train_dataloader.dataset)):
        with pytest.raises((DataError, FileNotFoundError)) as error:
            failing()
        text = str(error.value)
        assert folder in text and "train_dataloader.dataset.download=True" in text and "\n" not in text


def test_a_damaged_transfer_set_names_its_layout(tmp_path):
    write_cifar10(tmp_path)  # with the wrong checksums
    with pytest.raises(FileNotFoundError, match=r"cannot open torch/cifar10.*must hold data_batch_1"):
        build(small("cifar10", tmp_path).train_dataloader.dataset)


def write_folders(root, names):
    for value, name in enumerate(names):
        picture(root / name / "a.jpg", 10 * value)
    return root


def test_folders_named_by_wordnet_id_have_imagenets_labels(tmp_path):
    root = write_folders(tmp_path, [WNIDS[7], WNIDS[999], WNIDS[3]])
    data = ImageNetFolders(str(root), "", TRANSFORM, num_classes=3)
    assert data.metainfo == {"classes": (WNIDS[3], WNIDS[7], WNIDS[999]), "labels": (3, 7, 999)}
    found = {round(float(data[i]["inputs"].mean()), 3): data[i]["targets"] for i in range(3)}
    assert [label for _, label in sorted(found.items())] == [7, 999, 3]  # by grey value, in the order of writing


def test_folders_named_by_number_are_not_sorted_as_text(tmp_path):
    root = write_folders(tmp_path, ["10", "2", "100", "0"])
    data = ImageNetFolders(str(root), "", TRANSFORM, num_classes=4)
    found = {round(float(data[i]["inputs"].mean()), 3): data[i]["targets"] for i in range(4)}
    assert [label for _, label in sorted(found.items())] == [10, 2, 100, 0]
    assert data.metainfo["labels"] == (0, 2, 10, 100)


@pytest.mark.parametrize(
    ("names", "count", "message"),
    [
        (["tench"], 1, "1 of 1 folders are no class of ImageNet-1K, first 'tench'"),
        (["1000"], 1, "first '1000'"),
        ([WNIDS[0], "5"], 2, "1 of 2 folders are no class of ImageNet-1K, first '5'"),
        ([WNIDS[0]], 200, "1 class folders; expected 200.*test_dataloader.dataset.num_classes"),
    ],
)
def test_strange_or_missing_class_folders_are_named(names, count, message, tmp_path):
    root = write_folders(tmp_path, names)
    with pytest.raises(DataError, match=message):
        ImageNetFolders(str(root), "", TRANSFORM, num_classes=count)
    settings = {"type": "ImageNetFolders", "root": str(root), "split": "", "num_classes": count}
    cfg = Config({"test_dataloader": {"dataset": settings}, "default_scope": "mmengine"})
    assert [f.kind for f in check(cfg, ("test",)).findings if f.fatal] == [
        "class-count" if count == 200 else "class-names"
    ]


def test_a_missing_test_set_is_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected 200 class folders"):
        ImageNetFolders(str(tmp_path / "imagenet_a"), "", TRANSFORM, num_classes=200)


def test_only_the_classes_of_the_data_compete():
    metric = SubsetAccuracy(topk=(1, 2))
    metric.dataset_meta = {"labels": (3, 7, 999)}
    scores = torch.zeros(1000)
    scores[0], scores[7], scores[3] = 9.0, 2.0, 1.0  # the best score is of a class that the data has not
    for label in (7, 3, 999):
        metric.process(None, [{"scores": scores, "label": torch.tensor(label)}])
    assert metric.compute_metrics(metric.results) == pytest.approx({"top1": 100 / 3, "top2": 200 / 3})


def test_splits_that_would_be_read_as_others_are_refused(tmp_path):
    with pytest.raises(ValueError, match="oxford_iiit_pet"):
        TimmDataset(str(tmp_path), "tset", TRANSFORM, name="torch/oxford_iiit_pet")
    with pytest.raises(ValueError, match="without augmentation"):
        TimmDataset(str(tmp_path), "training", TRANSFORM)
