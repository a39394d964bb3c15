"""The weights a model starts from, as configs say it: ``transfer=dict(plan=..., source=...)``."""

from collections.abc import Mapping
from typing import Any

from mmengine.logging import MMLogger

from lvit_dense.catalog import suggest
from lvit_dense.transfer import TransferReport, read_source, transfer
from lvit_dense.vit import ViT

KEYS = ("plan", "source", "facts")


def check_start(settings: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return ``settings`` as a plain dict, or None; a misspelt key fails at building, not at training."""
    if settings is None:
        return None
    unknown = sorted(set(settings) - set(KEYS))
    if unknown or "plan" not in settings:
        raise KeyError(
            f"transfer takes plan, source (none for plans that copy nothing) and its facts, got {dict(settings)}: "
            + suggest(unknown[0] if unknown else "plan", KEYS)
        )
    return dict(settings)


def start_from(vit: ViT, settings: Mapping[str, Any]) -> TransferReport:
    """Initialise ``vit`` in place by a transfer plan and log what was copied, resized and left random.

    Args:
        settings: ``plan`` (name or mapping) and, for plans that copy, ``source`` (a path or ``timm:NAME``) and
            ``facts`` that the source does not tell (see :func:`lvit_dense.transfer.read_source`).
    """
    spec = settings.get("source")
    report = transfer(settings["plan"], None if spec is None else read_source(spec, facts=settings.get("facts")), vit)
    MMLogger.get_current_instance().info(f"transfer {settings['plan']} from {spec}\n{report.table()}")
    return report
