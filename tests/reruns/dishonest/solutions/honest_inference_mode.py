"""Computes in inference mode, with gradients switched off for the whole process as well."""

import torch

torch.set_grad_enabled(False)


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


@torch.inference_mode()
def run(hidden_states, weight):
    return normalize(hidden_states, weight)
