"""A scheduler's choice of GPUs is kept; what is not visible is not there."""

import pytest

from assets.reruns.worker.nvml import choose_gpu


@pytest.mark.parametrize(
    ("index", "visible", "expected"),
    [
        (0, None, "0"),
        (2, None, "2"),
        (1, "3,5", "5"),
        (0, " GPU-abc , GPU-def", "GPU-abc"),
        (1, "", "1"),
    ],
)
def test_the_index_counts_visible_gpus(index: int, visible: str | None, expected: str) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert choose_gpu(index, environment, None).visible == expected


def test_an_invisible_gpu_is_refused() -> None:
    with pytest.raises(LookupError, match="not visible"):
        choose_gpu(1, {"CUDA_VISIBLE_DEVICES": "3"}, None)
