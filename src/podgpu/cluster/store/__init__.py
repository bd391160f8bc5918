"""Reads nodes from a Prometheus-compatible store: Prometheus, Thanos, VictoriaMetrics or Mimir."""
