"""Returns two outputs by name, not in the definition's order."""

import torch


def run(hidden_states, epsilon):
    scale = torch.rsqrt(hidden_states.square().mean(dim=-1) + epsilon)
    return {"scale": scale, "output": hidden_states * scale[:, None]}
