"""Prints much more than anybody wants to read, in every call."""

import sys

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    print("normalize", hidden_states.shape, "x" * 2000)
    print("on", hidden_states.device, file=sys.stderr)
    return normalize(hidden_states, weight)
