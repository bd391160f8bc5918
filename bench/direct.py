"""Reads all GPUs one after another in one thread, and prints the median seconds for each GPU."""

import sys
from statistics import median
from time import monotonic, sleep

from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.reader import GpuReader
from podgpu.sources.nvml.session import EventListener, Session


def main() -> None:
    cycles, pause = int(sys.argv[1]), float(sys.argv[2])
    for found in Session(None, CallTracker(), EventListener()).refresh():
        card = GpuReader(found.raw, found.uuid, found.index, CallTracker())
        card.read()
        print(median(_seconds(card, pause) for _ in range(cycles)))


def _seconds(card: GpuReader, pause: float) -> float:
    sleep(pause)
    began = monotonic()
    card.read()
    return monotonic() - began


main()
