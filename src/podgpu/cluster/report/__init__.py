"""What pods held and used of the GPUs in a period, from the counters in a store."""
