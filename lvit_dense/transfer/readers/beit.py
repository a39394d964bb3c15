"""BEiT (Bao et al., 2022) and BEiT v2 (Peng et al., 2022), pre-trained or fine-tuned, original or in timm."""

import re
from typing import Any

import torch
from torch import Tensor

from lvit_dense.operators import Grid
from lvit_dense.transfer.canonical import SourceError, square_side
from lvit_dense.transfer.reader import (
    READERS,
    CheckpointReader,
    Converted,
    View,
    not_canonical,
    reverse,
    take,
    translate,
)
from lvit_dense.vit import ViT

_KEYS = {
    "blocks.*.gamma_1": "blocks.*.ls1.gamma",
    "blocks.*.gamma_2": "blocks.*.ls2.gamma",
    "blocks.*.attn.relative_position_bias_table": "blocks.*.attn.operator.bias.table",
}
_SHARED = "rel_pos_bias.relative_position_bias_table"
_INDEX = r".*relative_position_index"
_PRETRAINING = r"mask_token|lm_head\..*|cls_pt_layers\..*"


@READERS.register("beit")
class BEiTReader(CheckpointReader):
    """Query and value bias without a key bias, LayerScale as gamma_1 and gamma_2, a relative position bias.

    Pre-training files share one bias table over all blocks; each block gets a copy of it.
    """

    title = "BEiT / BEiT v2"
    native = {"init_values": 1.0, "k_bias": False, "pos_embed": "none", "relative_position": True}

    def why_not(self, view: View) -> str | None:
        """See :class:`CheckpointReader`."""
        if not view.has(r"blocks\.\d+\.attn\.q_bias"):
            return "no blocks.*.attn.q_bias"
        if "reg_token" in view.state:
            return "registers, which BEiT has not"
        state, _ = _renamed(view.state)
        if "pos_embed" not in state and not any(name.endswith("operator.bias.table") for name in state):
            return "neither a relative position table nor pos_embed: positions that no key tells, such as rotary ones"
        return not_canonical(state)

    def convert(self, view: View) -> Converted:
        """See :class:`CheckpointReader`."""
        state, dropped = _renamed(view.state)
        known: dict[str, Any] = {"k_bias": False}
        if "pos_embed" not in state:
            known["pos_embed"] = "none"
        table = next((v for n, v in state.items() if n.endswith("operator.bias.table")), None)
        if table is not None:
            grid = _table_grid(view.spec, table)
            known |= {"grid": grid, "operator": {"type": "softmax", "relative_position": list(grid)}}
        return Converted(state, known, dropped)

    def lay_out(self, vit: ViT) -> dict[str, Any]:
        """A fine-tuned file, under ``module`` as BEiT v2's are."""
        state = translate(vit.state_dict(), reverse(_KEYS))
        for i in range(vit.arch.depth):
            q, _, v = state.pop(f"blocks.{i}.attn.qkv.bias").chunk(3)
            state |= {f"blocks.{i}.attn.q_bias": q, f"blocks.{i}.attn.v_bias": v}
            n = vit.grid.tokens + 1
            state[f"blocks.{i}.attn.relative_position_index"] = torch.zeros(n, n, dtype=torch.long)
        return {"module": {**state, "mask_token": torch.zeros(1, 1, vit.embed_dim)}}


def _renamed(original: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    state, dropped = translate(original, _KEYS), dict[str, str]()
    take(state, dropped, _INDEX, "a table that is computed")
    take(state, dropped, _PRETRAINING, "masked-image modelling")
    blocks = sorted({m[1] for m in map(re.compile(r"blocks\.(\d+)\.").match, state) if m}, key=int)
    if _SHARED in state:
        shared = state.pop(_SHARED)
        state |= {f"blocks.{i}.attn.operator.bias.table": shared for i in blocks}
    for i in blocks:
        q, v = (state.pop(f"blocks.{i}.attn.{part}_bias", None) for part in "qv")
        if q is not None and v is not None:
            state[f"blocks.{i}.attn.qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
    return state, dropped


def _table_grid(spec: str, table: Tensor) -> Grid:
    """Grid of a table with (2 side - 1)^2 + 3 rows."""
    side = square_side(table.shape[0] - 3)
    if side is None or side % 2 == 0:
        raise SourceError(f"{spec}: a relative position table of {table.shape[0]} rows belongs to no square token grid")
    return Grid((side + 1) // 2, (side + 1) // 2)
