"""torch.compile with CUDA graphs of its own (mode reduce-overhead)."""

import torch


@torch.compile(mode="reduce-overhead")
def run(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)
