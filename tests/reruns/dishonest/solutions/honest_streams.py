"""Splits the work over two streams and has the caller's stream wait for both."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


_streams = []


def run(hidden_states, weight):
    if not _streams:
        _streams.extend(torch.cuda.Stream() for _ in range(2))
    here = torch.cuda.current_stream()
    output, half = torch.empty_like(hidden_states), len(hidden_states) // 2
    parts = (slice(0, half), slice(half, None))
    for stream, part in zip(_streams, parts):
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            output[part] = normalize(hidden_states[part], weight)
    for stream in _streams:
        here.wait_stream(stream)
    return output
