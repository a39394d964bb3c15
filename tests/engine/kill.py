"""Kill a run at random moments, resume it until it ends, and compare what is left with the unbroken run."""

import os
import random
import signal
import time

import torch

from lvit_dense.transfer import newest_checkpoint
from tests.engine.noisy_run import start, wait

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def kill_at_random(run, root, seconds, kills, draw: random.Random):
    """Send ``kills`` signals at random moments to a run that is resumed after each; let it end then.

    A run that ended before its signal came is followed by a new one.

    Args:
        run: trains in a folder, and resumes where told to.
        root: folder of the runs' folders.
        seconds: how long an unbroken run takes.

    Returns:
        The folders of all runs, and (signal's name, seconds after the start, newest checkpoint then) of every kill.
    """
    log, folders = [], [root / "0"]
    while len(log) < kills:
        folder, moment, number = folders[-1], draw.uniform(0.2, 1.0) * seconds, draw.choice(SIGNALS)
        pid = start(lambda folder=folder: run(folder, folder.exists()))
        time.sleep(moment)
        os.kill(pid, number)
        if wait(pid) == 0:
            folders.append(root / str(len(folders)))
        else:
            log.append((number.name, round(moment, 2), checkpoint_name(folder)))
    folder = folders[-1]
    assert wait(start(lambda: run(folder, folder.exists()))) == 0
    return folders, log


def checkpoint_name(folder):
    return newest_checkpoint(folder).name if (folder / "last_checkpoint").exists() else "none"


def state(folder):
    """Weights and averaged weights of the newest checkpoint."""
    saved = torch.load(newest_checkpoint(folder), map_location="cpu", weights_only=False)
    return {**saved["state_dict"], **{f"ema {name}": value for name, value in saved["ema_state_dict"].items()}}


def differing(one, other):
    """Names of tensors that are not equal bit for bit."""
    assert one.keys() == other.keys() and any(name.startswith("ema ") for name in one)
    return [name for name, value in one.items() if not torch.equal(value, other[name])]
