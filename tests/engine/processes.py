"""Two gloo processes without the cost of two Python starts: forks of the test process."""

import os

import torch.distributed as dist

from tests.engine.noisy_run import start, wait


def together(function, folder, processes=2):
    """Call ``function(rank)`` in processes that form a group; fails where one of them does."""
    folder.mkdir(parents=True, exist_ok=True)
    meeting = folder / f"meeting_{os.urandom(4).hex()}"

    def member(rank):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(processes), LOCAL_RANK=str(rank))
        os.chdir(folder)  # mmengine collects results in a folder below the current one
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
        function(rank)
        dist.barrier()

    running = [start(lambda rank=rank: member(rank)) for rank in range(processes)]
    assert [wait(pid) for pid in running] == [0] * processes


# How lvit_dense.experiment.launch wraps models on CPU processes.
CPU_WRAPPER = dict(type="MMDistributedDataParallel", device_ids=None, broadcast_buffers=False)
