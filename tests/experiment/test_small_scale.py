"""The comparison on real weights: its arms and the configs it writes."""

from mmengine.config import Config

from lvit_dense.experiment.small_scale import folded_suite, real_suite


def test_every_config_loads_over_the_shipped_one(tmp_path):
    suite = real_suite(tmp_path, tmp_path / "data")
    suite.write_configs()
    for path in {suite.config(cell) for cell in suite.cells}:
        cfg = Config.fromfile(path)
        assert str(tmp_path / "data") in str(cfg.train_dataloader.dataset)


def test_folded_arms_multiply_layer_scale_away(tmp_path):
    suite = folded_suite(tmp_path, tmp_path / "data")
    suite.write_configs()
    cfg = Config.fromfile(suite.config(suite.cells[0]))
    assert cfg.model.transfer == {"plan": {"fold_layer_scale": True}}
    assert cfg.model.backbone.init_values is None
