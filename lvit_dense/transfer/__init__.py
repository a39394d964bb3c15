"""From any pre-trained ViT to a student: read, resolve, copy, report.

A checkpoint of any known family is read into one canonical layout (:func:`read_source`); a plan says which groups of
weights a student takes from it (:func:`transfer`), strictly, with a report of what was copied.
"""

from lvit_dense.transfer.apply import resolve, transfer
from lvit_dense.transfer.canonical import GROUPS, Source, SourceError, SourceFacts, group_of
from lvit_dense.transfer.loading import newest_checkpoint
from lvit_dense.transfer.pixels import PixelChange, pixel_change
from lvit_dense.transfer.plan import PLANS, Resolution, TransferError, TransferPlan
from lvit_dense.transfer.reader import READERS, CheckpointReader
from lvit_dense.transfer.report import GroupReport, TransferReport
from lvit_dense.transfer.source import build_teacher, read_source

__all__ = [
    "GROUPS",
    "PLANS",
    "READERS",
    "CheckpointReader",
    "GroupReport",
    "PixelChange",
    "Resolution",
    "Source",
    "SourceError",
    "SourceFacts",
    "TransferError",
    "TransferPlan",
    "TransferReport",
    "build_teacher",
    "group_of",
    "newest_checkpoint",
    "pixel_change",
    "read_source",
    "resolve",
    "transfer",
]
