"""How workloads used what they hold, from a store or a recording: the statement of `podgpu fit`."""
