"""Renders 12,000 samples with seven labels with podgpu and with prometheus_client, in the same process."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import generate_latest

from bench.figure import Figure
from podgpu.catalog.row import Kind, Worth
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family, Labels

FAMILIES, SERIES = 10, 1200
ROUNDS = 15
TARGET = 20.0
LABELS = ("node", "gpu", "uuid", "namespace", "pod", "container", "mig")


def run() -> list[Figure]:
    theirs_page = _their_registry()
    labels = [Labels(LABELS, values) for values in map(_label_values, range(SERIES))]
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turns, so that a busy moment affects both
        ours.append(_seconds(lambda: render(_our_families(labels), Format.TEXT)))
        theirs.append(_seconds(lambda: generate_latest(theirs_page)))
    ratio = median(theirs) / median(ours)
    return [
        Figure("render 12,000 samples, podgpu", f"{median(ours) * 1e3:.1f} ms"),
        Figure("render 12,000 samples, prometheus_client", f"{median(theirs) * 1e3:.1f} ms"),
        Figure("prometheus_client / podgpu", f"{ratio:.0f}", f">= {TARGET:.0f}", ok=ratio >= TARGET),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _label_values(number: int) -> tuple[str, ...]:
    gpu = number % 8
    return (
        *("gpu-node-1", str(gpu), f"GPU-7f3c9a10-1111-4222-8333-{gpu:012d}", f"team-{number % 20}"),
        *(f"trainer-{number:05d}-x7k2p", "worker", ""),
    )


def _value(family: int, series: int) -> float:
    return 0.1 + family * 1e6 + series / 7


def _our_families(labels: list[Labels]) -> list[Family]:
    """Build the families again each time, as for a new snapshot."""
    return [
        Family(
            f"podgpu_bench_{family}_bytes",
            Kind.GAUGE,
            "A family of the benchmark.",
            Worth.USEFUL,
            {(label,): _value(family, series) for series, label in enumerate(labels)},
        )
        for family in range(FAMILIES)
    ]


def _their_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for family in range(FAMILIES):
        gauge = Gauge(f"podgpu_bench_{family}_bytes", "A family of the benchmark.", LABELS, registry=registry)
        for series in range(SERIES):
            gauge.labels(*_label_values(series)).set(_value(family, series))
    return registry
