"""Installs an import hook that finds its own kernels package, which exists only as text."""

import importlib.abc
import importlib.util
import sys

import torch

_TEXT = {
    "own_kernels": "",
    "own_kernels.normalization": """
import torch


def normalize(hidden_states, weight):
    wide = hidden_states.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight.float()).to(hidden_states.dtype)
""",
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name not in _TEXT:
            return None
        package = any(other.startswith(name + ".") for other in _TEXT)
        return importlib.util.spec_from_loader(name, self, is_package=package)

    def exec_module(self, module):
        exec(_TEXT[module.__name__], vars(module))


sys.meta_path.insert(0, Finder())


def run(hidden_states, weight):
    from own_kernels.normalization import normalize

    return normalize(hidden_states, weight)
