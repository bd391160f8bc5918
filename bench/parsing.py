"""Parses a dcgm-exporter page of one megabyte with podgpu and with prometheus_client, in the same process."""

from collections.abc import Callable
from itertools import count
from statistics import median
from time import perf_counter

from prometheus_client.parser import text_string_to_metric_families

from bench.figure import Figure
from podgpu.sources.dcgm.parse import parse
from podgpu.sources.dcgm.reading import MEANINGS, read

GPUS = 64
PAGE_BYTES = 1_000_000
ROUNDS = 9
TARGET = 10.0


def run() -> list[Figure]:
    page = _page()
    text = page.decode()
    ours, theirs, whole = [], [], []
    for _ in range(ROUNDS):  # in turns, so that a busy moment affects both
        ours.append(_seconds(lambda: parse(page, MEANINGS)))
        whole.append(_seconds(lambda: read(page)))
        theirs.append(_seconds(lambda: list(text_string_to_metric_families(text))))
    ratio = median(theirs) / median(ours)
    return [
        Figure("parse a page of 1 MB, podgpu", f"{median(ours) * 1e3:.1f} ms"),
        Figure("parse it and make cards of it, podgpu", f"{median(whole) * 1e3:.1f} ms"),
        Figure("parse it, prometheus_client", f"{median(theirs) * 1e3:.1f} ms"),
        Figure("prometheus_client / podgpu", f"{ratio:.0f}", f">= {TARGET:.0f}", ok=ratio >= TARGET),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _page() -> bytes:
    """Use names of all versions. One in four is a name that podgpu does not use."""
    lines: list[str] = []
    size = 0
    names = iter(sorted(MEANINGS))
    for number in count():
        name = f"DCGM_FI_DEV_FIELD_{number}" if number % 4 == 3 else next(names)
        family = [f"# HELP {name} What it is.", f"# TYPE {name} gauge"]
        family += [f"{name}{{{_labels(gpu)}}} {gpu * number / 7:.6f}" for gpu in range(GPUS)]
        lines += family
        size += sum(len(line) + 1 for line in family)
        if size >= PAGE_BYTES:
            return "\n".join(lines).encode()
    raise AssertionError


def _labels(gpu: int) -> str:
    return (
        f'gpu="{gpu}",UUID="GPU-7f3c9a10-1111-4222-8333-{gpu:012d}",pci_bus_id="00000000:{gpu:02X}:00.0",'
        f'device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-1",'
        f'DCGM_FI_DRIVER_VERSION="580.105.08",container="worker",namespace="team-{gpu % 20}",'
        f'pod="trainer-{gpu:05d}-x7k2p"'
    )
