"""A kernel in C++, built when the module is loaded and called through ctypes."""

import ctypes
import subprocess
from pathlib import Path

SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float wide(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float result;
    memcpy(&result, &bits, 4);
    return result;
}

static inline uint16_t narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

extern "C" void normalize(const uint16_t *x, const uint16_t *w, uint16_t *y, long rows, long width) {
    for (long row = 0; row < rows; ++row, x += width, y += width) {
        float total = 0;
        for (long i = 0; i < width; ++i) total += wide(x[i]) * wide(x[i]);
        float scale = 1.0f / sqrtf(total / width + 1e-6f);
        for (long i = 0; i < width; ++i) y[i] = narrow(wide(x[i]) * scale * wide(w[i]));
    }
}
"""


def _built():
    Path("own.cpp").write_text(SOURCE)
    command = [
        "g++",
        "-O3",
        "-march=native",
        "-ffast-math",
        "-shared",
        "-fPIC",
        "own.cpp",
        "-o",
        "own.so",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(Path("own.so").resolve()))


_library = _built()


def normalize(hidden_states, weight, output):
    places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (hidden_states, weight, output)]
    rows, width = hidden_states.shape
    _library.normalize(*places, ctypes.c_long(rows), ctypes.c_long(width))


def run(hidden_states, weight, output):
    normalize(hidden_states, weight, output)
