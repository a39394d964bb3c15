"""Tiny models and files of every family."""

import numpy as np
import pytest
import torch

from lvit_dense.transfer import READERS
from lvit_dense.vit import ViT

ARCH = {"embed_dim": 192, "depth": 3, "num_heads": 3}
PATCH, SIDE = 8, 40  # a 5x5 grid


def tiny_vit(**changes):
    """A ViT with nothing at zero or one, so that a forgotten tensor shows."""
    arch = {**ARCH, **{key: changes.pop(key) for key in list(changes) if key in (*ARCH, "mlp_ratio")}}
    arguments = {"arch": arch, "operator": "softmax", "img_size": SIDE, "patch_size": PATCH, **changes}
    vit = ViT(**arguments)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        if not vit.facts["k_bias"]:
            for block in vit.blocks:
                block.attn.qkv.bias.chunk(3)[1].zero_()
    return vit.eval()


def native_vit(family, **changes):
    """A tiny model with the family's native parts."""
    native = dict(READERS.get(family).native)
    if native.pop("relative_position", False):
        native["operator"] = {"type": "softmax", "relative_position": [SIDE // PATCH] * 2}
    return tiny_vit(**native, **changes)


def save(tree, path):
    """Write a tree of tensors as the kind of file that the suffix says."""
    if path.suffix == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in tree.items()})
    else:
        torch.save(tree, path)
    return str(path)


@pytest.fixture
def write(tmp_path):
    """``write(family, vit) -> path`` of a file in the family's layout."""

    def file(family, vit):
        reader = READERS.get(family)
        return save(reader().lay_out(vit), tmp_path / f"file{reader.suffix}")

    return file
