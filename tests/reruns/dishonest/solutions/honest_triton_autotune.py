"""A Triton kernel with an autotuner, and a benchmark of its own at the first call."""

import torch
import triton
import triton.language as tl
from triton.testing import do_bench


@triton.autotune(
    configs=[triton.Config({}, num_warps=1), triton.Config({}, num_warps=4)], key=["rows"]
)
@triton.jit
def _normalize(source, factors, target, rows, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, WIDTH)
    values = tl.load(source + row * WIDTH + columns).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / WIDTH + 1e-6)
    result = values * scale * tl.load(factors + columns).to(tl.float32)
    tl.store(target + row * WIDTH + columns, result.to(tl.bfloat16))


_times = []


def run(hidden_states, weight):
    output = torch.empty_like(hidden_states)
    rows = hidden_states.shape[0]

    def launch():
        _normalize[(rows,)](hidden_states, weight, output, rows, WIDTH=128)

    if not _times:
        _times.append(do_bench(launch, warmup=1, rep=5))
    launch()
    return output
