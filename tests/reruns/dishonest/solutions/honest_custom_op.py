"""Registers an operator of its own with torch.library, with an autograd formula and a fake kernel."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


@torch.library.custom_op("own_kernels::normalize", mutates_args=())
def _operator(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return normalize(hidden_states, weight)


@_operator.register_fake
def _(hidden_states, weight):
    return torch.empty_like(hidden_states)


_operator.register_autograd(lambda context, gradient: (gradient, None))
_library = torch.library.Library("own_kernels", "FRAGMENT")
_library.define("halve(Tensor x) -> Tensor")
_library.impl("halve", lambda x: x / 2, "CompositeExplicitAutograd")


def run(hidden_states, weight):
    return torch.ops.own_kernels.normalize(hidden_states, weight)
