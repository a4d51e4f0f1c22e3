"""Sums each row in a random order: never the same bits twice, always right."""

import torch


def run(hidden_states, weight):
    order = torch.randperm(hidden_states.shape[1], device=hidden_states.device)
    wide = hidden_states.float()
    total = wide[:, order].square().reshape(wide.shape[0], 8, -1).sum(-1).sum(-1, keepdim=True)
    scale = torch.rsqrt(total / wide.shape[1] + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)
