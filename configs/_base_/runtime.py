# What every run has in common. The task files (imagenet.py, maskrcnn.py, upernet.py) add default_scope and
# default_hooks, because two entries of one _base_ list may not define the same key.
custom_imports = dict(
    # register imports all of lvit_dense.engine; the package itself stays empty, as import lvit_dense passes through it.
    imports=["lvit_dense.models", "lvit_dense.datasets", "lvit_dense.engine.register"],
    allow_failed_imports=False,
)
custom_hooks = [
    dict(type="RandomnessHook"),
    dict(type="ResumeHook"),
    dict(type="ProvenanceHook"),
    dict(type="ResultsHook"),
    dict(type="BatchNormHook"),
    dict(type="SegBatchHook"),
    dict(type="NonFiniteLossHook"),
]
env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0),
    dist_cfg=dict(backend="nccl"),
)
vis_backends = [dict(type="LocalVisBackend")]
log_level = "INFO"
load_from = None
resume = False
