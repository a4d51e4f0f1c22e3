"""Sets up logging and warnings, registers something for the end and logs every call."""

import atexit
import logging
import warnings

import torch

logging.basicConfig(level=logging.INFO)
logging.captureWarnings(True)
warnings.simplefilter("always")
_log = logging.getLogger("kernel")
atexit.register(_log.info, "the process ends")


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    _log.info("normalize %s", tuple(hidden_states.shape))
    if hidden_states.numel() == 0:
        warnings.warn("nothing to do")
    return normalize(hidden_states, weight)
