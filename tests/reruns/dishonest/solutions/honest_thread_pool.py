"""Splits the rows over a pool of threads that lives on, and waits for all of them inside the call."""

from concurrent.futures import ThreadPoolExecutor

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


_pool = ThreadPoolExecutor(2)


def run(hidden_states, weight):
    output, half = torch.empty_like(hidden_states), len(hidden_states) // 2
    parts = (slice(0, half), slice(half, None))

    def work(part):
        with torch.no_grad():
            output[part] = normalize(hidden_states[part], weight)

    list(_pool.map(work, parts))
    return output
