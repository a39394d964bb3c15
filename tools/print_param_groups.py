#!/usr/bin/env python
"""Print how the optimiser of a config treats every parameter: layer, learning-rate scale, rate, weight decay.

  python tools/print_param_groups.py configs/upernet_relu_base.py
  python tools/print_param_groups.py configs/upernet_ttt_base.py --grep pos_embed
  python tools/print_param_groups.py configs/maskrcnn_relu_base.py --cfg-options optim_wrapper.optimizer.lr=2e-4

The model is built without memory for its weights, so every size takes seconds. Parameters that do not train (frozen
ones) are not listed; their number is in the last line. A parameter that layer-wise decay cannot place is an error.
"""

import argparse

from mmengine.config import DictAction


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="config file")
    parser.add_argument("--grep", default="", metavar="TEXT", help="only parameters with TEXT in their name")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE", help="override settings")
    return parser.parse_args()


def main() -> None:
    """Build on the meta device, place, print."""
    args = parse_args()
    import torch
    from mmengine.registry import MODELS, init_default_scope

    from lvit_dense.catalog import check_arguments
    from lvit_dense.engine.layer_decay import place_parameters, placement_table
    from lvit_dense.experiment.launch import load_config, one_line_errors

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options)
        init_default_scope(cfg.get("default_scope", "mmengine"))
        with torch.device("meta"):
            model = MODELS.build(cfg.model)
        switches = cfg.optim_wrapper.get("paramwise_cfg") or {}
        check_arguments("optim_wrapper.paramwise_cfg", place_parameters, switches)
        placements = place_parameters(model, **switches)
        shown = [placement for placement in placements if args.grep in placement.name]
        if not shown:
            raise ValueError(f"--grep {args.grep}: no parameter that trains has this in its name")
    optimizer = cfg.optim_wrapper.optimizer
    print(placement_table(shown, optimizer.lr, optimizer.weight_decay))
    groups = {(placement.lr_scale, placement.decays) for placement in placements}
    frozen = sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)
    trained = sum(placement.parameter.numel() for placement in placements)
    print(
        f"{len(placements)} tensors, {trained:,} parameters in {len(groups)} groups; {frozen:,} parameters are frozen"
    )


if __name__ == "__main__":
    main()
