"""What two processes must agree on: gradients with recomputation, draws, resuming, evaluation of uneven data."""

import json

import numpy as np
import pytest
import torch
from mmengine.model import MMDistributedDataParallel

from lvit_dense.engine.coco_ap import CocoAP
from lvit_dense.models.backbone import LinearViT
from tests.engine.kill import differing, state
from tests.engine.noisy_run import noisy_runner
from tests.engine.processes import CPU_WRAPPER, together


def gradients(frozen, with_cp, unused):
    torch.manual_seed(0)
    model = LinearViT(arch=(32, 4, 2), operator="relu", img_size=32, frozen_stages=frozen, with_cp=with_cp)
    wrapped = MMDistributedDataParallel(model.train(), device_ids=None, find_unused_parameters=unused)
    torch.manual_seed(torch.distributed.get_rank())
    sum(level.square().mean() for level in wrapped(torch.randn(2, 3, 32, 32))).backward()
    return {name: p.grad for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("frozen", [-1, 2])
def test_recomputation_gives_the_same_gradients_under_ddp(tmp_path, frozen):
    def check(rank):
        plain = gradients(frozen, False, False)
        assert all(gradient is not None for gradient in plain.values())
        for unused in (False, True):
            again = gradients(frozen, True, unused)
            for name, gradient in plain.items():
                torch.testing.assert_close(again[name], gradient, msg=name)
        other = [torch.empty_like(plain["vit.blocks.3.mlp.fc1.weight"]) for _ in range(2)]
        torch.distributed.all_gather(other, plain["vit.blocks.3.mlp.fc1.weight"])
        assert torch.equal(*other)

    together(check, tmp_path)


def train(folder, **options):
    def one(rank):
        noisy_runner(folder, launcher="pytorch", cfg=dict(model_wrapper_cfg=CPU_WRAPPER), **options).train()

    together(one, folder)


@pytest.mark.parametrize("by_epoch", [True, False], ids=["epochs", "iterations"])
def test_a_resumed_pair_ends_with_the_weights_of_the_unbroken_one(tmp_path, by_epoch):
    options = dict(by_epoch=by_epoch, batch=5, end=4 if by_epoch else 12)
    train(tmp_path / "whole", length=options["end"], **options)
    train(tmp_path / "broken", length=2 if by_epoch else 5, **options)
    train(tmp_path / "broken", length=options["end"], resume=True, **options)
    assert differing(state(tmp_path / "whole"), state(tmp_path / "broken")) == []


def test_a_pair_is_continued_by_one_process(tmp_path):
    train(tmp_path, by_epoch=True, length=2, end=4)
    runner = noisy_runner(tmp_path, by_epoch=True, resume=True, log_level="WARNING")
    runner.train()
    log = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert "resuming on 1 processes with 4 pictures a step; saved on 2 with 8" in log
    assert "epoch 2 ends at iteration 8 now, was 4" in log and runner.iter == 16


def test_ranks_draw_different_numbers(tmp_path):
    from lvit_dense.engine.randomness import seed_step

    class Place:
        seed, iter = 3, 5

    def check(rank):
        seed_step(Place)
        drawn = [torch.empty(4) for _ in range(2)]
        torch.distributed.all_gather(drawn, torch.rand(4))
        assert not torch.equal(*drawn)

    together(check, tmp_path)


def sample(image, found):
    boxes = torch.tensor([[2.0, 3, 12, 13]] * found).reshape(-1, 4)
    masks = torch.zeros(found, 20, 20, dtype=torch.bool)
    masks[:, 3:13, 2:12] = True
    instances = dict(bboxes=boxes, scores=torch.full((found,), 0.9), labels=torch.zeros(found, dtype=torch.long))
    return dict(img_id=image, pred_instances=dict(instances, masks=masks))


def test_three_pictures_on_two_processes_one_of_which_finds_nothing(tmp_path):
    square = dict(category_id=1, bbox=[2, 3, 10, 10], area=100, iscrowd=0)
    polygon = [[2, 3, 12, 3, 12, 13, 2, 13]]
    truth = dict(
        images=[dict(id=i, width=20, height=20, file_name=f"{i}.jpg") for i in range(3)],
        annotations=[dict(square, id=i + 1, image_id=i, segmentation=polygon) for i in range(3)],
        categories=[dict(id=1, name="disc")],
    )
    (tmp_path / "truth.json").write_text(json.dumps(truth))

    def metric():
        made = CocoAP(str(tmp_path / "truth.json"))
        made.dataset_meta = dict(classes=("disc",))
        return made

    single = metric()
    single.process(None, [sample(0, 1), sample(1, 0), sample(2, 1)])
    expected = single.evaluate(3)
    assert 0.5 < expected["coco/bbox_mAP"] < 1

    def check(rank):
        both = metric()
        # The sampler gives picture 0 to both: three pictures are dealt out as 0 2 | 1 0.
        both.process(None, [sample(0, 1), sample(2, 1)] if rank == 0 else [sample(1, 0), sample(0, 1)])
        found = both.evaluate(3)
        assert found == expected, (found, expected)
        nothing = metric()
        nothing.process(None, [sample(rank, 0)])
        assert set(nothing.evaluate(2).values()) == {0.0}

    together(check, tmp_path)
    assert np.isfinite(list(expected.values())).all()
