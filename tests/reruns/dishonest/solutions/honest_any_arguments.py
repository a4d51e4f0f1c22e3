"""Takes any arguments, as solutions of 2025 often do."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(*args, **kwargs):
    hidden_states = kwargs.get("hidden_states", args[0] if args else None)
    weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
    return normalize(hidden_states, weight)
