"""Keeps the chart's schema, copies and manifests, and the table of privileges, in step with what they are made from."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
CHART = PROJECT / "deploy/helm/podgpu"
