"""Takes its inputs by name only."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(*, weight, hidden_states, eps=1e-6):
    return normalize(hidden_states, weight)
