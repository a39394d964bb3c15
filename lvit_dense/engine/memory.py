"""Peak memory of a process or a GPU."""

import resource


def peak_gib(device: str) -> float:
    """Peak GiB since the process began: allocated on the GPU, or resident in main memory."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
