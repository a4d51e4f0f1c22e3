"""A session counts as evidence only on a known, healthy, steady and unshared GPU."""

import pytest

from assets.reruns.worker.calibration import Calibration, judge
from assets.reruns.worker.roofline import product_named

GOOD = {"launch_ns": 20_000.0, "copy_bytes_per_s": 4.3e12, "matmul_flops": 7.8e14}


def calibration(**changes: object) -> Calibration:
    values = {
        "before": GOOD, "after": GOOD, "product": product_named("NVIDIA H200"), "is_cpu": False,
        "telemetry": [{"throttle_reasons": 0x4}], "other_processes": 0, **changes,
    }  # fmt: skip
    return judge(**values)  # type: ignore[arg-type]


def test_a_healthy_and_steady_gpu_is_clean() -> None:
    assert calibration().clean
    assert calibration().reasons == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"is_cpu": True, "product": None}, "CPU_FALLBACK"),
        ({"product": None}, "NO_STORED_LIMITS"),
        ({"after": None}, "CALIBRATION_FAILED"),
        ({"after": {**GOOD, "copy_bytes_per_s": 4.1e12}}, "CALIBRATION_DRIFT"),
        ({"after": {**GOOD, "matmul_flops": 7.1e14}}, "CALIBRATION_DRIFT"),
        (
            {
                "before": {**GOOD, "copy_bytes_per_s": 2e12},
                "after": {**GOOD, "copy_bytes_per_s": 2e12},
            },
            "BELOW_STORED_LIMIT",
        ),
        ({"telemetry": [{}, {"throttle_reasons": 0x40}]}, "THROTTLED"),
        ({"other_processes": 1}, "GPU_SHARED"),
    ],
)
def test_everything_else_is_not_and_says_why(changes: dict[str, object], code: str) -> None:
    found = calibration(**changes)
    assert not found.clean
    assert [entry["code"] for entry in found.reasons] == [code]
