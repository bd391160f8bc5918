"""What was had of the GPUs between two times, from the counters in a store."""
