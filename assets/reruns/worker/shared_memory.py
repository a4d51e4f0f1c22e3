"""Memory that two processes see: on a GPU through CUDA's driver, on a CPU through a sealed memfd.

The driver is called through ctypes and never through torch's own sharing, which trusts what the
other process says of itself. A handle that comes from a solution's process names memory of that
process only, and how much of it there is, is asked of the driver. Needs torch.
"""

import ctypes
import mmap
from typing import Any

import torch

HANDLE_BYTES = 64
_CUDA_DEVICE, _UINT8 = 2, 1
_LAZY_PEER_ACCESS = 1


class SharingFailed(Exception):  # noqa: N818
    """Memory could not be allocated, exported or mapped."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _ManagedTensor(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Driver:
    """The CUDA driver's calls on the context that torch made current."""

    def __init__(self) -> None:
        """Raises `SharingFailed` where there is no driver."""
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise SharingFailed(f"the CUDA driver cannot be loaded: {error}") from error
        torch.zeros(1, device="cuda")  # makes torch's context the current one
        self._opened: dict[bytes, tuple[int, int]] = {}

    def allocate(self, size_bytes: int) -> int:
        """Address of a fresh allocation that nothing else lies in; raises `SharingFailed`."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size_bytes))
        return int(pointer.value)

    def free(self, pointer: int) -> None:
        """Give an allocation back."""
        self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def export(self, pointer: int) -> tuple[bytes, int]:
        """The handle of the allocation that holds an address, and the address's offset in it."""
        base, _ = self._range(pointer)
        handle = _Handle()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
        return bytes(memoryview(handle)), pointer - base

    def open(self, handle: bytes) -> tuple[int, int]:
        """Map another process's allocation; its address here and its true size in bytes."""
        if handle not in self._opened:
            if len(handle) != HANDLE_BYTES:
                raise SharingFailed("a memory handle has the wrong length")
            given, pointer = _Handle.from_buffer_copy(handle), ctypes.c_uint64()
            function = self._library.cuIpcOpenMemHandle_v2
            function.argtypes = [ctypes.POINTER(ctypes.c_uint64), _Handle, ctypes.c_uint]
            self._check("cuIpcOpenMemHandle", function(pointer, given, _LAZY_PEER_ACCESS))
            address = int(pointer.value)
            self._opened[handle] = (address, self._range(address)[1])
        return self._opened[handle]

    def write_value(self, stream: int, pointer: int, value: int) -> None:
        """Have a stream write 32 bits when it comes to it, after all that was before."""
        self._call("cuStreamWriteValue32_v2", *_on_stream(stream, pointer, value))

    def wait_value(self, stream: int, pointer: int, value: int) -> None:
        """Have a stream stand still until the 32 bits there have reached a value."""
        self._call("cuStreamWaitValue32_v2", *_on_stream(stream, pointer, value))

    def close(self) -> None:
        """Unmap everything that was opened."""
        for address, _ in self._opened.values():
            self._library.cuIpcCloseMemHandle(ctypes.c_uint64(address))
        self._opened.clear()

    def _range(self, pointer: int) -> tuple[int, int]:
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._call(
            "cuMemGetAddressRange_v2",
            ctypes.byref(base),
            ctypes.byref(size),
            ctypes.c_uint64(pointer),
        )
        return int(base.value), int(size.value)

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, code: int) -> None:
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            shown = text.value.decode("ascii") if text.value else str(code)
            raise SharingFailed(f"{name} failed: {shown}")


def _on_stream(stream: int, pointer: int, value: int) -> tuple[Any, ...]:
    return (
        ctypes.c_void_p(stream),
        ctypes.c_uint64(pointer),
        ctypes.c_uint32(value),
        ctypes.c_uint(0),
    )


def device_bytes(address: int, size_bytes: int, index: int = 0) -> torch.Tensor:
    """A tensor of bytes over device memory that somebody else keeps alive."""
    managed = _ManagedTensor()
    shape = (ctypes.c_int64 * 1)(size_bytes)
    managed.tensor = _Tensor(
        data=address,
        device_type=_CUDA_DEVICE,
        device_id=index,
        ndim=1,
        dtype=_DataType(_UINT8, 8, 1),
        shape=shape,
        strides=None,
        byte_offset=0,
    )
    _KEPT.append((managed, shape))  # torch reads both for as long as the tensor lives
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new_capsule(ctypes.addressof(managed), b"dltensor", None)
    tensor: torch.Tensor = torch.utils.dlpack.from_dlpack(capsule)
    return tensor


_KEPT: list[Any] = []


def host_bytes(descriptor: int, size_bytes: int) -> torch.Tensor:
    """A tensor of bytes over shared host memory; raises `SharingFailed`."""
    try:
        memory = mmap.mmap(descriptor, size_bytes)
    except (OSError, ValueError) as error:
        raise SharingFailed(f"shared memory cannot be mapped: {error}") from error
    return torch.frombuffer(memory, dtype=torch.uint8)
