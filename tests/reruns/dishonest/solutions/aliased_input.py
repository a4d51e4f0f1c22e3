"""Writes the result over the input and hands the input back."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    hidden_states.copy_(normalize(hidden_states, weight))
    return hidden_states.view(hidden_states.shape)
