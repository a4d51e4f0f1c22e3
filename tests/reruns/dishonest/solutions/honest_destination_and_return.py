"""Asks for the output without saying so in its document, and returns it too."""

import torch


def run(hidden_states, weight, output):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    output.copy_(wide * scale * weight.float())
    return output
