"""What fits: advice about what workloads hold of the GPUs, from what they used over days."""
