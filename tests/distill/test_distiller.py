"""The distillation loss against its equation, and what a teacher must never do."""

import pytest
import torch
from mmengine.logging import MessageHub

from lvit_dense.distill import TERMS, Distiller
from lvit_dense.distill.terms import Term
from lvit_dense.models.classifier import _progress
from lvit_dense.transfer import SourceFacts, pixel_change
from lvit_dense.transfer.canonical import IMAGENET_MEAN, IMAGENET_STD
from lvit_dense.vit import ViT

ARCH = {"embed_dim": 24, "depth": 3, "num_heads": 3}
IMAGES = torch.randn(2, 3, 48, 80, generator=torch.Generator().manual_seed(0)).double()

# SourceFacts of no interest here
FACTS = dict.fromkeys(
    ("embed_dim", "depth", "num_heads", "mlp_ratio", "patch_size", "in_chans", "grid", "class_token", "registers",
     "layer_scale", "qkv_bias", "pre_norm", "act_layer", "norm_eps", "patch_bias")
)  # fmt: skip


def vit(operator="relu", **kwargs):
    return ViT(ARCH, operator, img_size=(48, 80), **kwargs).double()


def attention_outputs(model, images):
    """Outputs of every attention module, by walking the equations of the block."""
    tokens, grid = model.embed(images)
    outputs = []
    for block in model.blocks:
        outputs.append(block.attn(block.norm1(tokens), grid, model.prefix))
        tokens = tokens + outputs[-1]
        tokens = tokens + block.mlp(block.norm2(tokens))
    return outputs


def loss_of(distiller, student, images=IMAGES, progress=0.0):
    distiller.check_student(student)
    with distiller.watch(student) as seen:
        features = student(images)
    return distiller.loss(seen, student, images, features.grid, progress)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("blocks", [None, [1], [0, 2]])
def test_output_mse_is_its_equation(reduction, blocks):
    student, teacher = vit(), vit("softmax")
    distiller = Distiller(teacher, weight=50.0, blocks=blocks, block_reduction=reduction)
    errors = [
        (s - t).square().mean() for s, t in zip(attention_outputs(student, IMAGES), attention_outputs(teacher, IMAGES))
    ]
    errors = torch.stack([errors[i] for i in blocks or range(3)])
    expected = 50.0 * (errors.mean() if reduction == "mean" else errors.sum())
    torch.testing.assert_close(loss_of(distiller, student), expected.float())


def test_student_without_class_token_matches_patch_tokens_only():
    student, teacher = vit(class_token=False, pos_embed="sincos"), vit("softmax")
    errors = [
        (s - t[:, 1:]).square().mean()
        for s, t in zip(attention_outputs(student, IMAGES), attention_outputs(teacher, IMAGES))
    ]
    torch.testing.assert_close(loss_of(Distiller(teacher), student), 50 * torch.stack(errors).mean().float())


def test_registers_of_the_teacher_are_left_out():
    student, teacher = vit(), vit("softmax", registers=2)
    errors = [
        (s - torch.cat([t[:, :1], t[:, 3:]], 1)).square().mean()
        for s, t in zip(attention_outputs(student, IMAGES), attention_outputs(teacher, IMAGES))
    ]
    torch.testing.assert_close(loss_of(Distiller(teacher), student), 50 * torch.stack(errors).mean().float())


def test_teacher_with_another_patch_size_is_resampled_to_the_students_grid():
    student = vit(class_token=False)
    teacher = ViT(ARCH, "softmax", img_size=(48, 80), patch_size=8, class_token=False).double()
    expected = []
    for s, t in zip(attention_outputs(student, IMAGES), attention_outputs(teacher, IMAGES)):
        maps = t.mT.reshape(2, 24, 6, 10)
        # bilinear by exactly one half, align_corners=False: the mean of the four middle samples of each 2x2 cell
        t = torch.nn.functional.avg_pool2d(maps, 2).flatten(2).mT
        expected.append((s - t).square().mean())
    torch.testing.assert_close(
        loss_of(Distiller(teacher), student), 50 * torch.stack(expected).mean().float(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("term", TERMS.names())
def test_every_term_has_gradients_for_the_student_only(term):
    student, teacher = vit(), vit("softmax")
    before = {k: v.clone() for k, v in teacher.state_dict().items()}
    loss = loss_of(Distiller(teacher, term=term), student)
    assert loss.dtype == torch.float32 and torch.isfinite(loss) and loss > 0
    loss.backward()
    assert student.blocks[0].attn.qkv.weight.grad.abs().sum() > 0
    assert all(p.grad is None and not p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(v, before[k]) for k, v in teacher.state_dict().items())
    assert not teacher.training


def test_terms_are_seven_and_zero_for_equal_tensors():
    assert len(TERMS.names()) == 7
    x = torch.rand(2, 3, 5, 5, dtype=torch.float64)
    x = x / x.sum(-1, keepdim=True)
    for name in TERMS.names():
        value = TERMS.get(name).compare(x, x)
        entropy = -(x * x.log()).sum(-1).mean()
        torch.testing.assert_close(value, entropy if name == "map_ce" else torch.zeros_like(value))


def test_map_terms_compare_the_explicit_maps():
    student, teacher = vit(), vit("softmax")

    def maps(model):
        tokens, grid = model.embed(IMAGES)
        found = []
        for block in model.blocks:
            found.append(block.attn.operator.attention_matrix(block.attn.inputs(block.norm1(tokens), grid, 1)))
            tokens = block(tokens, grid, 1)
        return found

    errors = [(s - t).square().mean() for s, t in zip(maps(student), maps(teacher))]
    loss = loss_of(Distiller(teacher, term="map_mse", weight=3e3), student)
    torch.testing.assert_close(loss, (3e3 * torch.stack(errors).mean()).float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("term", ["output_mse", "map_mse"])
def test_teacher_forced_inputs_of_an_identical_student_give_zero(term):
    teacher, student = vit("softmax"), vit("softmax")
    student.load_state_dict(teacher.state_dict())
    student.blocks[0].mlp.fc1.weight.data.mul_(3)  # its own activations now differ; the forced ones do not
    assert loss_of(Distiller(teacher, term=term, inputs="teacher"), student).item() < 1e-10
    assert loss_of(Distiller(teacher, term=term, weight=1e6), student).item() > 1e-3


@pytest.mark.parametrize(
    ("schedule", "progress", "factor"), [("cosine", 0.5, 0.5), ("warmup", 0.05, 0.5), ("constant", 0.9, 1)]
)
def test_schedules(schedule, progress, factor):
    student, teacher = vit(), vit("softmax")
    plain = loss_of(Distiller(teacher), student)
    torch.testing.assert_close(
        loss_of(Distiller(teacher, schedule=schedule), student, progress=progress), factor * plain
    )


def test_progress_is_the_share_of_iterations_done():
    hub = MessageHub.get_instance("progress")
    assert _progress() == 0.0  # outside a run
    hub.update_info("iter", 3)
    hub.update_info("max_iters", 12)
    assert _progress() == 0.25
    MessageHub._instance_dict.pop("progress")


def test_gradients_with_activation_checkpointing_are_the_plain_ones():
    student, teacher = vit(), vit("softmax")
    grads = []
    for with_cp in (False, True):
        student.with_cp = with_cp
        student.zero_grad()
        loss_of(Distiller(teacher), student).backward()
        grads.append([p.grad.clone() for p in student.parameters() if p.grad is not None])
    assert len(grads[0]) == len(grads[1]) > 10
    for plain, recomputed in zip(*grads):
        torch.testing.assert_close(plain, recomputed)


def test_the_teacher_stops_after_its_last_attention():
    teacher = vit("softmax")
    calls = []
    teacher.blocks[2].mlp.register_forward_hook(lambda *_: calls.append("mlp"))
    teacher.norm.register_forward_hook(lambda *_: calls.append("norm"))
    loss_of(Distiller(teacher), vit())
    assert calls == []


def test_the_teacher_sees_the_students_batch_itself_and_hooks_copy_nothing():
    student, teacher = vit().float(), vit("softmax").float()
    images, outputs, pictures, compared = IMAGES.float(), [], [], []
    teacher.patch_embed.register_forward_pre_hook(lambda _, args: pictures.append(args[0]))
    for block in (*student.blocks, *teacher.blocks):
        block.attn.register_forward_hook(lambda _, args, output: outputs.append(output.data_ptr()))
    distiller = Distiller(teacher)
    compare = distiller.term.compare
    distiller.term = Term(lambda *pair: (compared.append([x.data_ptr() for x in pair]), compare(*pair))[1], False)
    loss_of(distiller, student, images)
    assert pictures[0] is images
    assert compared == [[ours, theirs] for ours, theirs in zip(outputs[:3], outputs[3:], strict=True)]


def test_a_teacher_of_other_pixel_statistics_sees_its_own_pictures():
    student, teacher = vit(), vit("softmax")
    pixels = torch.rand(2, 3, 48, 80, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mean, std = (torch.tensor(v, dtype=torch.float64).reshape(3, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD))
    ours, theirs = (pixels - mean) / std, (pixels - 0.5) / 0.5
    facts = SourceFacts(**FACTS, pixel_mean=(0.5,) * 3, pixel_std=(0.5,) * 3)
    errors = [
        (s - t).square().mean() for s, t in zip(attention_outputs(student, ours), attention_outputs(teacher, theirs))
    ]
    loss = loss_of(Distiller(teacher, pixels=pixel_change(facts)), student, ours)
    torch.testing.assert_close(loss, 50 * torch.stack(errors).mean().float())
    assert abs(loss_of(Distiller(teacher), student, ours) - loss) > 1e-3 * loss


def test_pictures_are_left_alone_where_statistics_agree_or_are_unknown():
    assert pixel_change(SourceFacts(**FACTS)) is None
    assert pixel_change(SourceFacts(**FACTS), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]) is None
    assert pixel_change(SourceFacts(**FACTS), (0.5,) * 3, (0.5,) * 3) is not None
    assert pixel_change(SourceFacts(**FACTS, pixel_mean=None, pixel_std=None), (0.5,) * 3, (0.5,) * 3) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"term": "output_msse"}, "did you mean 'output_mse'"),
        ({"blocks": [3]}, "blocks 0..2"),
        ({"block_reduction": "max"}, "mean"),
        ({"schedule": "linear"}, "cosine"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises((KeyError, ValueError), match=message):
        Distiller(vit("softmax"), **options)


def test_students_of_another_size_are_refused():
    small = ViT({"embed_dim": 12, "depth": 3, "num_heads": 3}, "relu", img_size=48)
    with pytest.raises(ValueError, match=r"12x3.*24x3"):
        Distiller(vit("softmax")).check_student(small)
