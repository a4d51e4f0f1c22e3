"""A Numba CUDA kernel on torch's memory and stream."""

import math

import torch
from numba import cuda, float32


@cuda.jit
def _normalize(source, factors, target):
    parts = cuda.shared.array(128, float32)
    row, i = cuda.blockIdx.x, cuda.threadIdx.x
    value = source[row, i]
    parts[i] = value * value
    cuda.syncthreads()
    step = 64
    while step:
        if i < step:
            parts[i] += parts[i + step]
        cuda.syncthreads()
        step //= 2
    target[row, i] = value / math.sqrt(parts[0] / 128 + 1e-6) * factors[i]


def run(hidden_states, weight):
    wide, factors = hidden_states.float(), weight.float()
    output = torch.empty_like(wide)
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    arrays = [cuda.as_cuda_array(tensor) for tensor in (wide, factors, output)]
    _normalize[hidden_states.shape[0], 128, stream](*arrays)
    return output.to(hidden_states.dtype)
