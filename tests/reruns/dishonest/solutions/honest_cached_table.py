"""Keeps what follows from the fixed scalar input in a functools cache, and nothing else."""

import functools

import torch


@functools.lru_cache(maxsize=None)
def _offset(epsilon, device):
    return torch.tensor(float(epsilon), device=device)


def run(hidden_states, epsilon):
    offset = _offset(float(epsilon), hidden_states.device)
    scale = torch.rsqrt(hidden_states.square().mean(dim=-1) + offset)
    return hidden_states * scale[:, None], scale
