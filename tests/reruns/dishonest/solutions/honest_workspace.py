"""Keeps one output buffer for all calls of a shape and computes into it every time."""

import torch

_workspace = {}


def run(hidden_states, weight):
    key = (hidden_states.shape, hidden_states.device)
    if key not in _workspace:
        _workspace[key] = torch.empty_like(hidden_states)
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    _workspace[key].copy_(wide * scale * weight.float())
    return _workspace[key]
