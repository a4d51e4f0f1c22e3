"""What a GPU product can do at most, and the time a problem must take at least.

Peaks are the vendors' datasheet numbers (dense, without sparsity), so that the floor is below
what any kernel reaches and a median under it cannot be right. Calibration limits are what a
healthy machine reaches in `calibration.py`'s three measurements.
"""

from dataclasses import asdict, dataclass
from typing import Any

from .documents import Problem, size_bytes


@dataclass(frozen=True)
class Product:
    """Peaks of one GPU product and the limits that its calibration must keep.

    `bytes_per_s` is the datasheet's memory rate; `flops_16` and `flops_8` are dense operations
    per second for 16-bit and 8-bit floats; `flops_32` is the fastest float32 path (TF32).
    """

    match: str
    bytes_per_s: float
    flops_16: float
    flops_8: float
    flops_32: float
    least_copy_bytes_per_s: float
    least_matmul_flops: float


#: First match wins. Sources: NVIDIA's product datasheets for each name. The limits are about
#: 75% of the memory rate and 55% of the 16-bit rate.
PRODUCTS = (
    Product("GH200", 4.9e12, 990e12, 1979e12, 495e12, 2.6e12, 480e12),
    Product("H200 NVL", 4.8e12, 836e12, 1671e12, 418e12, 3.6e12, 430e12),
    Product("H200", 4.8e12, 990e12, 1979e12, 495e12, 3.6e12, 540e12),
    Product("H100 NVL", 3.94e12, 836e12, 1671e12, 418e12, 2.9e12, 430e12),
    Product("H100 PCIe", 2.04e12, 757e12, 1513e12, 378e12, 1.5e12, 350e12),
    Product("H100", 3.36e12, 990e12, 1979e12, 495e12, 2.5e12, 500e12),
    Product("B200", 8.0e12, 2250e12, 4500e12, 1125e12, 5.6e12, 1200e12),
    Product("A100-SXM4-80GB", 2.04e12, 312e12, 312e12, 156e12, 1.5e12, 200e12),
    Product("A100 80GB PCIe", 1.94e12, 312e12, 312e12, 156e12, 1.4e12, 170e12),
    Product("A100", 1.56e12, 312e12, 312e12, 156e12, 1.1e12, 170e12),
    Product("L40S", 0.864e12, 362e12, 733e12, 183e12, 0.6e12, 180e12),
    Product("RTX 4090", 1.01e12, 331e12, 661e12, 165e12, 0.75e12, 130e12),
)

#: Families whose every call must read each input in full. In the others an index decides what
#: is read (a paged cache, a routing table), so only the outputs are counted.
FULLY_READ = frozenset({"rmsnorm", "layernorm", "gemm", "silu", "gelu", "softmax", "rope"})


@dataclass(frozen=True)
class Roofline:
    """Least bytes, operations and time of a problem; `floor_ns` is None where nothing is known."""

    bytes: int
    flops: int | None
    floor_ns: int | None
    how: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def product_named(name: str) -> Product | None:
    """The stored product whose name occurs in the driver's name of the GPU."""
    return next((product for product in PRODUCTS if product.match in name), None)


def roofline(problem: Problem, product: Product | None, l2_bytes: int) -> Roofline:
    """The least time in ns for a problem on a product with an L2 cache of `l2_bytes`.

    Inputs are read once from memory (the cache was flushed); outputs are written once, but as
    much of them as fits in the L2 may still lie there when the call is over, and counts nothing.
    """
    family = problem.op_type.split("_")[0]
    read = sum(size_bytes(spec.shape, spec.dtype) for spec in problem.inputs if spec.shape)
    written = sum(size_bytes(spec.shape, spec.dtype) for spec in problem.outputs)
    full = family in FULLY_READ
    counted = (read if full else 0) + written
    flops = _flops(problem, family)
    if product is None:
        return Roofline(counted, flops, None, "no stored peaks for this device")
    memory_s = max(read if full else 0, counted - l2_bytes, 0) / product.bytes_per_s
    rate = _flop_rate(problem, product)
    compute_s = flops / rate if flops is not None and rate is not None else 0.0
    inputs = "inputs read once" if full else "inputs not counted: an index decides what is read"
    how = f"{inputs}, outputs written once less {l2_bytes} bytes of L2; datasheet {product.match}"
    return Roofline(counted, flops, int(max(memory_s, compute_s) * 1e9), how)


def _flops(problem: Problem, family: str) -> int | None:
    if family != "gemm" or not {"M", "N", "K"} <= set(problem.axes):
        return None
    return 2 * problem.axes["M"] * problem.axes["N"] * problem.axes["K"]


def _flop_rate(problem: Problem, product: Product) -> float | None:
    widest = max((size_bytes((1,), spec.dtype) for spec in problem.inputs if spec.shape), default=0)
    return {1: product.flops_8, 2: product.flops_16, 4: product.flops_32}.get(widest)
