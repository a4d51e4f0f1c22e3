"""Switches the garbage collector off and freezes what is there, to be free of pauses, and counts live tensors weakly."""

import gc
import weakref

import torch

gc.collect()
gc.freeze()
gc.disable()
_outputs = weakref.WeakSet()


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    output = normalize(hidden_states, weight)
    _outputs.add(output.untyped_storage())
    return output
