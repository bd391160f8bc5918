"""What the dialects of dcgm-exporter have in common."""
