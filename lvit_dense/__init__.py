"""Dense prediction with linear-attention Vision Transformers initialised from softmax ones."""

from lvit_dense.engine import mmcv_ops

__version__ = "0.1.0"

mmcv_ops.install()
