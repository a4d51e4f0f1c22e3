"""Normalize: upstream documents become KernelIndex manifests with exact digests, or quarantine."""
