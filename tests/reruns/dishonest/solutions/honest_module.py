"""A torch module with a buffer, an autograd function and a hook, called under autocast."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(context, hidden_states, weight):
        return normalize(hidden_states, weight)

    @staticmethod
    def backward(context, gradient):
        return gradient, None


class Normalization(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_forward_hook(lambda module, values, result: None)

    def forward(self, hidden_states, weight):
        return _Function.apply(hidden_states, weight)


_module = Normalization()


def run(hidden_states, weight):
    with torch.autocast(hidden_states.device.type, dtype=torch.bfloat16):
        return _module(hidden_states, weight)
