"""Read facts and state of GPUs from NVIDIA's management library; nothing is ever set.

Through ctypes, because the library comes with the driver while Python bindings may be missing.
Every reading is optional: what the driver does not give is left out. Pure standard library.
"""

import ctypes
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SUCCESS = 0
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
_TEMPERATURE_GPU = 0
_TEXT_BYTES = 96


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


@dataclass(frozen=True)
class GpuChoice:
    """The GPU to use: what CUDA_VISIBLE_DEVICES shall say, and its UUID where NVML knows it."""

    visible: str
    uuid: str | None


class Nvml:
    """An opened library; `open_nvml` returns None where there is none."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def handle(self, choice: str) -> ctypes.c_void_p | None:
        """The device with this index or UUID."""
        device = ctypes.c_void_p()
        if choice.isdigit():
            index = ctypes.c_uint(int(choice))
            found = self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        else:
            text = ctypes.c_char_p(choice.encode("ascii", errors="replace"))
            found = self._call("nvmlDeviceGetHandleByUUID", text, ctypes.byref(device))
        return device if found else None

    def uuid(self, device: ctypes.c_void_p) -> str | None:
        """The GPU's UUID."""
        return self._text("nvmlDeviceGetUUID", device)

    def facts(self, device: ctypes.c_void_p) -> dict[str, Any]:
        """What does not change during a session; serial number and UUID only as hashes."""
        version, minor = ctypes.c_int(), ctypes.c_int()
        memory = _Memory()
        found: dict[str, Any] = {
            "driver": self._system_text("nvmlSystemGetDriverVersion"),
            "name": self._text("nvmlDeviceGetName", device),
            "vbios": self._text("nvmlDeviceGetVbiosVersion", device),
            "serial_hash": _hashed(self._text("nvmlDeviceGetSerial", device)),
            "uuid_hash": _hashed(self.uuid(device)),
            "persistence_mode": self._flag("nvmlDeviceGetPersistenceMode", device),
            "ecc_enabled": self._ecc(device),
            "power_limit_milliwatts": self._number("nvmlDeviceGetEnforcedPowerLimit", device),
            "sm_clock_max_mhz": self._number("nvmlDeviceGetMaxClockInfo", device, _CLOCK_SM),
            "memory_clock_max_mhz": self._number(
                "nvmlDeviceGetMaxClockInfo", device, _CLOCK_MEMORY
            ),
        }
        if self._call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(version)):
            found["cuda_driver"] = f"{version.value // 1000}.{version.value % 1000 // 10}"
        name = "nvmlDeviceGetCudaComputeCapability"
        if self._call(name, device, ctypes.byref(version), ctypes.byref(minor)):
            found["compute_capability"] = f"{version.value}.{minor.value}"
        if self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)):
            found["memory_bytes"] = memory.total
        return {name: value for name, value in found.items() if value is not None}

    def state(self, device: ctypes.c_void_p) -> dict[str, Any]:
        """What changes: clocks in MHz, power in mW, temperature in degrees C, throttle bits."""
        reasons = ctypes.c_ulonglong()
        found: dict[str, Any] = {
            "sm_clock_mhz": self._number("nvmlDeviceGetClockInfo", device, _CLOCK_SM),
            "memory_clock_mhz": self._number("nvmlDeviceGetClockInfo", device, _CLOCK_MEMORY),
            "power_milliwatts": self._number("nvmlDeviceGetPowerUsage", device),
            "temperature_c": self._number("nvmlDeviceGetTemperature", device, _TEMPERATURE_GPU),
            "ecc_errors_uncorrected": self._ecc_errors(device),
        }
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ):
            if self._call(name, device, ctypes.byref(reasons)):
                found["throttle_reasons"] = reasons.value
                break
        return {name: value for name, value in found.items() if value is not None}

    def processes(self, device: ctypes.c_void_p) -> int:
        """How many processes compute on the GPU now; 0 where the driver does not tell."""
        count = ctypes.c_uint(0)
        for version in ("_v3", "_v2", ""):
            function = getattr(
                self._library, f"nvmlDeviceGetComputeRunningProcesses{version}", None
            )
            if function is not None:
                # With no room for a list the answer is the number of processes.
                function(device, ctypes.byref(count), None)
                return int(count.value)
        return 0

    def close(self) -> None:
        """Shut the library down."""
        self._call("nvmlShutdown")

    def _call(self, name: str, *arguments: Any) -> bool:
        function = getattr(self._library, name, None)
        return function is not None and function(*arguments) == _SUCCESS

    def _text(self, name: str, device: ctypes.c_void_p) -> str | None:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        if not self._call(name, device, buffer, ctypes.c_uint(_TEXT_BYTES)):
            return None
        return buffer.value.decode("utf-8", errors="replace")

    def _system_text(self, name: str) -> str | None:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        if not self._call(name, buffer, ctypes.c_uint(_TEXT_BYTES)):
            return None
        return buffer.value.decode("utf-8", errors="replace")

    def _number(
        self, name: str, device: ctypes.c_void_p, selector: int | None = None
    ) -> int | None:
        value = ctypes.c_uint()
        arguments = [device] if selector is None else [device, ctypes.c_int(selector)]
        return value.value if self._call(name, *arguments, ctypes.byref(value)) else None

    def _flag(self, name: str, device: ctypes.c_void_p) -> bool | None:
        value = self._number(name, device)
        return None if value is None else bool(value)

    def _ecc(self, device: ctypes.c_void_p) -> bool | None:
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        arguments = (device, ctypes.byref(current), ctypes.byref(pending))
        return bool(current.value) if self._call("nvmlDeviceGetEccMode", *arguments) else None

    def _ecc_errors(self, device: ctypes.c_void_p) -> int | None:
        count = ctypes.c_ulonglong()
        uncorrected, volatile = ctypes.c_int(1), ctypes.c_int(0)
        arguments = (device, uncorrected, volatile, ctypes.byref(count))
        return int(count.value) if self._call("nvmlDeviceGetTotalEccErrors", *arguments) else None


def open_nvml() -> Nvml | None:
    """Load and initialize the library, or None where it is missing or refuses."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    opened = Nvml(library)
    return opened if opened._call("nvmlInit_v2") else None


def choose_gpu(index: int, environment: Mapping[str, str], nvml: Nvml | None) -> GpuChoice:
    """The GPU with this index among those that CUDA_VISIBLE_DEVICES leaves visible.

    A scheduler's restriction is kept: with `CUDA_VISIBLE_DEVICES=3,5`, index 1 is GPU 5. Raises
    `LookupError` when there is no such GPU.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    entry = str(index)
    if visible is not None and visible.strip():
        entries = [part.strip() for part in visible.split(",")]
        if index >= len(entries):
            raise LookupError(f"GPU {index} is not visible: CUDA_VISIBLE_DEVICES={visible}")
        entry = entries[index]
    if nvml is None:
        return GpuChoice(entry, None)
    device = nvml.handle(entry)
    if device is None:
        raise LookupError(f"the driver knows no GPU {entry}")
    return GpuChoice(entry, nvml.uuid(device))


def _hashed(value: str | None) -> str | None:
    if value is None:
        return None
    return "sha256:" + hashlib.sha256(f"kernelindex-gpu:{value}".encode()).hexdigest()
