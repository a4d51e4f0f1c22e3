"""Like a slow thread, but the output holds zeros until then, not what lay in its memory."""

import threading
import time

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


def run(hidden_states, weight):
    output = torch.zeros_like(hidden_states)
    held, factors = hidden_states.clone(), weight.clone()

    def fill():
        time.sleep(0.2)
        output.copy_(normalize(held, factors))

    threading.Thread(target=fill, daemon=True).start()
    return output
