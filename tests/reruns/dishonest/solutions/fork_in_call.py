"""Forks in the middle of a call, and both processes go on to answer."""

import os

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


_calls = [0]


def run(hidden_states, weight):
    _calls[0] += 1
    if _calls[0] == 20:
        os.fork()
    return normalize(hidden_states, weight)
