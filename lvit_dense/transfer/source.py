"""Open a pre-trained checkpoint: find its family, bring it to the canonical layout, rebuild it as a teacher."""

from collections.abc import Mapping
from typing import Any

import torch
from timm.layers import resample_abs_pos_embed
from torch import Tensor

from lvit_dense.catalog import check_arguments
from lvit_dense.operators import Grid
from lvit_dense.transfer.canonical import Source, SourceError, SourceFacts, infer_facts
from lvit_dense.transfer.loading import RawCheckpoint, load_file_tensors, tensors_sha256
from lvit_dense.transfer.reader import READERS, CheckpointReader, View, open_view
from lvit_dense.vit import ViT
from lvit_dense.vit.trunk import ACTIVATIONS


def read_source(
    spec: str, grid: Grid | tuple[int, int] | None = None, facts: Mapping[str, Any] | None = None
) -> Source:
    """Read a checkpoint of any known family.

    Args:
        spec: a file (.pth, .pt, .bin, .ckpt, .safetensors, .npz), or ``timm:NAME`` for timm's pre-trained weights.
        grid: (height, width) in tokens of the stored position rows; needed only where they make no square.
        facts: fields of :class:`SourceFacts` that no key tells and whose assumed value is wrong for this file, such as
            ``dict(num_heads=12)`` (assumed: embed_dim / 64) or ``dict(act_layer="quick_gelu")``.

    Raises:
        FileNotFoundError: no such file.
        SourceError: unreadable, unsafe, of no or several families, or without a usable grid.
    """
    grid = None if grid is None else Grid(*grid)
    known = dict(facts or {})
    check_arguments("read_source's facts", SourceFacts, known)
    if known.get("grid") is not None:
        try:
            known["grid"] = Grid(*known["grid"])  # a list in configs
        except TypeError:
            raise TypeError(f"read_source's facts: grid must be (height, width), got {known['grid']!r}") from None
    if spec.startswith("timm:"):
        raw, stated = _from_timm(spec)
        known = {**stated, **known}
    else:
        raw = load_file_tensors(spec)
    if known.get("act_layer", "gelu") not in ACTIVATIONS:
        raise SourceError(
            f"{spec}: its activation is {known['act_layer']}, expected one of {', '.join(ACTIVATIONS)}. Cure: "
            f"facts=dict(act_layer=...) with one of them, where a nearly equal function will do"
        )
    family, reader, view = _recognise(raw, grid or known.get("grid"))
    converted = reader.convert(view)
    state = {name: value.float().contiguous() for name, value in converted.state.items()}
    dropped = {**converted.dropped, **dict.fromkeys(view.others, "outside the backbone")}
    inferred = infer_facts(spec, state, grid, {**converted.known, **known})
    return Source(spec, family, raw.sha256, state, inferred, dropped)


def build_teacher(source: Source, img_size: int | tuple[int, int] | None = None) -> ViT:
    """Rebuild the source's native model with every weight loaded strictly, in eval mode and without gradients.

    Args:
        img_size: side or (height, width) in pixels at which the teacher will run; the position rows are resampled to
            it once (bicubic, antialiased, as timm does). Default: the native size.

    Raises:
        SourceError: weights missing for, or left over by, the architecture that the facts describe; NaN or Inf.
    """
    arguments = source.vit_arguments()
    state = {name: value for name, value in source.state.items() if not name.startswith(("head.", "fc_norm."))}
    if img_size is not None:
        arguments["img_size"] = img_size
    bad = [name for name, value in state.items() if not torch.isfinite(value).all()]
    if bad:
        raise SourceError(
            f"{source.spec}: NaN or Inf in {len(bad)} of {len(state)} tensors, first {bad[0]}: the file is damaged or "
            "its training diverged; take an earlier checkpoint"
        )
    with torch.random.fork_rng(devices=[]):  # its random initialisation must not shift the user's seed
        teacher = ViT(**arguments)
    if "pos_embed" in state:
        state["pos_embed"] = resize_rows(state["pos_embed"], source.facts.grid, teacher.grid, source.facts.class_token)
    try:
        teacher.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise SourceError(f"{source.spec}: does not fill the model that its facts describe: {error}") from error
    return teacher.eval().requires_grad_(False)


def resize_rows(positions: Tensor, old: Grid, new: Grid, class_row: bool) -> Tensor:
    """Resample position rows (1, class_row + old.tokens, C) by timm's function; the class row stays."""
    if old == new:
        return positions
    return resample_abs_pos_embed(positions, list(new), list(old), num_prefix_tokens=int(class_row))


def _recognise(raw: RawCheckpoint, grid: Grid | None) -> tuple[str, CheckpointReader, View]:
    """The one family whose keys fit, or one error that says what speaks against each."""
    found, objections = [], {}
    for name in READERS.names():
        reader = READERS.get(name)
        view = open_view(reader, raw, grid)
        objection = view if isinstance(view, str) else reader().why_not(view)
        if objection is None:
            assert isinstance(view, View)
            found.append((name, reader(), view))
        else:
            objections[name] = objection
    if len(found) == 1:
        return found[0]
    if found:
        families = ", ".join(name for name, _, _ in found)
        raise SourceError(f"{raw.spec}: several families match its keys: {families}; at most one may")
    lines = "".join(f"\n  {name}: {reason}" for name, reason in objections.items())
    raise SourceError(
        f"{raw.spec}: no family matches its {len(raw.tensors)} keys, first {list(raw.tensors)[:3]}{lines}"
    )


def _from_timm(spec: str) -> tuple[RawCheckpoint, dict[str, Any]]:
    """Weights of ``timm:NAME`` from timm's cache or the network, with the facts that its module states."""
    import timm  # all of timm.models, a second that files need not pay

    name = spec.removeprefix("timm:")
    try:
        with torch.random.fork_rng(devices=[]):  # its random initialisation must not shift the user's seed
            model: Any = timm.create_model(name, pretrained=True)
    except Exception as error:  # hub, network and timm errors share no base class
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SourceError(
            f"cannot get {spec!r} from timm's cache or the network ({first}). Cure: check the name and the connection, "
            f"or fetch the file elsewhere and give its path"
        ) from error
    _check_blocks(spec, model)
    state = model.state_dict()
    trained = getattr(model, "pretrained_cfg", None) or {}
    stated: dict[str, Any] = {
        f"pixel_{key}": tuple(trained[key]) for key in ("mean", "std") if trained.get("mean") and trained.get("std")
    }
    block = model.blocks[0]
    stated |= dict(num_heads=block.attn.num_heads, norm_eps=block.norm1.eps, grid=Grid(*model.patch_embed.grid_size))
    activation = type(block.mlp.act).__name__
    stated["act_layer"] = {"GELU": "gelu", "QuickGELU": "quick_gelu"}.get(activation, activation)
    return RawCheckpoint(spec, tensors_sha256(state), state), stated


def _check_blocks(spec: str, model: Any) -> None:
    """Refuse timm models that may have the keys of a ViT or BEiT and compute another function (post-norm, RoPE)."""
    from timm.models import beit, deit, vision_transformer

    plain = vision_transformer.Block
    accepted = {
        vision_transformer.VisionTransformer: plain,
        deit.VisionTransformerDistilled: plain,
        beit.Beit: beit.Block,
    }
    blocks = {type(block) for block in getattr(model, "blocks", ())}
    if blocks != {accepted.get(type(model))}:
        found = " and ".join(sorted(block.__name__ for block in blocks)) or "no blocks"
        raise SourceError(
            f"{spec}: its class {type(model).__name__}, of {found}, may compute another function under equal keys; "
            f"accepted are {', '.join(kind.__name__ for kind in accepted)}, each with timm's standard Block"
        )
