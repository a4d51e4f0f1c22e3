"""Works in place, on memory of its own."""

import torch


def run(hidden_states, weight):
    wide = hidden_states.to(torch.float32, copy=True)
    scale = wide.square().mean(dim=-1, keepdim=True).add_(1e-6).rsqrt_()
    wide.mul_(scale).mul_(weight.float())
    return wide.to(hidden_states.dtype)
