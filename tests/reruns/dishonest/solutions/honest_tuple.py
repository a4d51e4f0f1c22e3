"""Returns two outputs as a tuple."""

import torch


def run(hidden_states, epsilon):
    scale = torch.rsqrt(hidden_states.square().mean(dim=-1) + epsilon)
    return hidden_states * scale[:, None], scale
