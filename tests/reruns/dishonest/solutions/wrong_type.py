"""Leaves out the conversion back and returns more precise values than asked for."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    return normalize(hidden_states.float(), weight)
