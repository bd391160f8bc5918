"""Reads each GPU's values one after another in one thread, and prints the median seconds per GPU."""

import sys
from statistics import median
from time import monotonic, sleep

from podgpu.sources.nvml.event import EventListener
from podgpu.sources.nvml.handle import Journal
from podgpu.sources.nvml.reader import GpuReader
from podgpu.sources.nvml.session import Session


def main() -> None:
    cycles, pause = int(sys.argv[1]), float(sys.argv[2])
    for found in Session(None, Journal(), EventListener()).refresh():
        card = GpuReader(found.raw, found.uuid, found.index, Journal())
        card.read()
        print(median(_seconds(card, pause) for _ in range(cycles)))


def _seconds(card: GpuReader, pause: float) -> float:
    sleep(pause)
    began = monotonic()
    card.read()
    return monotonic() - began


main()
