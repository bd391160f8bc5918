"""Builds podgpu's container image as an OCI archive, without an engine and without a registry."""
