"""Multiplies in halves along the depth: another order of sums than the reference's."""

import torch


def run(A, B):
    half = A.shape[1] // 2
    first = torch.matmul(A[:, :half].float(), B[:, :half].float().T)
    return (first + torch.matmul(A[:, half:].float(), B[:, half:].float().T)).to(A.dtype)
