"""What podgpu costs others at scale: a Prometheus, a store that is written to, and the API server."""
