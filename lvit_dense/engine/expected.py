"""Say at the end of a run how far its numbers are from the expected ones."""

from collections.abc import Mapping
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class ExpectedMetricHook(Hook):
    """Compare the last evaluation with expected numbers: one log line, a warning where a tolerance is missed.

    It never stops a run; ``tools/reproduce.py report TABLE --check`` is what fails on a miss.

    Args:
        expected: metric key -> (value, tolerance), both as the evaluator reports the metric.
        source: where the numbers come from.
    """

    priority = "VERY_LOW"

    def __init__(self, expected: Mapping[str, tuple[float, float]], source: str) -> None:
        self.expected = {key: (float(value), float(tolerance)) for key, (value, tolerance) in expected.items()}
        self.source = source
        self._last: dict[str, float] = {}

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Remember the numbers."""
        self._last = dict(metrics or {})

    def after_train(self, runner: Any) -> None:
        """Compare the last validation of the training."""
        self._compare(runner, self._last)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Compare a test."""
        self._compare(runner, dict(metrics or {}))

    def _compare(self, runner: Any, metrics: Mapping[str, float]) -> None:
        for key, (value, tolerance) in self.expected.items():
            if key in metrics:
                difference = metrics[key] - value
                text = f"{key} {metrics[key]:.4g}, expected {value:.4g} ± {tolerance:.2g} ({self.source})"
                if abs(difference) <= tolerance:
                    runner.logger.info(f"as expected: {text}")
                else:
                    runner.logger.warning(f"not as expected, {difference:+.3g}: {text}")
