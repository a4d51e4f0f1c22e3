"""Captures its own CUDA graph once, copies every call's contents into it and replays it."""

import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)


_graphs = {}


def run(hidden_states, weight):
    if torch.cuda.is_current_stream_capturing():
        return normalize(hidden_states, weight)
    key = hidden_states.shape
    if key not in _graphs:
        held = [hidden_states.clone(), weight.clone()]
        normalize(*held)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = normalize(*held)
        _graphs[key] = (graph, held, made)
    graph, held, made = _graphs[key]
    held[0].copy_(hidden_states)
    held[1].copy_(weight)
    graph.replay()
    return made.clone()
