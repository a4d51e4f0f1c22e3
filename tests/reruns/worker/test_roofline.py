"""The floor is what the bytes and operations must take, and never more than that."""

import pytest

from assets.reruns.worker.documents import InputSpec, OutputSpec, Problem
from assets.reruns.worker.roofline import product_named, roofline

H200 = product_named("NVIDIA H200")


def problem(
    op_type: str, shapes: list[tuple[int, ...]], out: tuple[int, ...], **axes: int
) -> Problem:
    inputs = tuple(
        InputSpec(f"i{number}", shape, "float16", "random") for number, shape in enumerate(shapes)
    )
    return Problem("d", op_type, dict(axes), inputs, (OutputSpec("o", out, "float16"),))


def test_a_large_matrix_product_is_bound_by_its_operations() -> None:
    extent = 8192
    found = roofline(
        problem("gemm", [(extent, extent)] * 2, (extent, extent), M=extent, N=extent, K=extent),
        H200, 0,
    )  # fmt: skip
    assert found.flops == 2 * extent**3
    assert found.floor_ns == pytest.approx(2 * extent**3 / 990e12 * 1e9, rel=0.01)


def test_a_normalization_is_bound_by_its_bytes() -> None:
    rows = 520_128
    found = roofline(problem("rmsnorm", [(rows, 128), (128,)], (rows, 128)), H200, 0)
    assert found.bytes == 2 * 2 * rows * 128 + 256
    assert found.floor_ns == pytest.approx(found.bytes / 4.8e12 * 1e9, rel=0.01)


def test_outputs_that_fit_in_the_cache_count_nothing() -> None:
    small = roofline(problem("rmsnorm", [(1000, 128)], (1000, 128)), H200, 60_000_000)
    assert small.floor_ns == int(2 * 1000 * 128 / 4.8e12 * 1e9)


def test_inputs_that_an_index_selects_from_are_not_counted() -> None:
    found = roofline(problem("gqa_paged", [(10**6, 128)], (1, 128)), H200, 0)
    assert found.bytes == 256
    assert "not counted" in found.how


def test_an_unknown_device_has_no_floor() -> None:
    assert roofline(problem("rmsnorm", [(8, 8)], (8, 8)), None, 0).floor_ns is None


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
    ],
)
def test_products_are_told_apart(name: str, match: str) -> None:
    found = product_named(name)
    assert found is not None
    assert found.match == match
