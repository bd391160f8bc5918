"""Reads how workloads used what they hold, from a store or a recording, and makes the statement of `podgpu fit`."""
