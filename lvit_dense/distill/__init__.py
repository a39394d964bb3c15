"""Distillation of attention: what is recorded, how it is compared, who the teacher is."""

from lvit_dense.distill.distiller import Distiller, DistillError
from lvit_dense.distill.taps import record_inputs, record_outputs
from lvit_dense.distill.terms import TERMS

__all__ = ["TERMS", "DistillError", "Distiller", "record_inputs", "record_outputs"]
