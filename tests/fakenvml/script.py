"""Builds scripts for the fake NVML library. The script language is described in script.c.

A `Value` is a number or the text of one: see `grows`, `swings`, `refused`, `typed` and `UNKNOWN`. All is
mutable: change a node and `write` it again, and a running library follows.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Value = int | float | str

UNKNOWN = "unknown"
# A running library looks at its script at most once a millisecond.
_SETTLE_SECONDS = 0.002


def grows(base: float, per_second: float) -> str:
    """A counter: `base` at the node's epoch, or at the time the library was loaded."""
    return f"{base}+{per_second}/s"


def swings(base: float, amplitude: float, period_seconds: float) -> str:
    return f"{base}~{amplitude}/{period_seconds}"


def refused(code: int) -> str:
    """The reading answers this NVML return code."""
    return f"!{code}"


def typed(value: Value, kind: str) -> str:
    """A field value of another type than u64: uint, int, s64 or double."""
    return f"{value} {kind}"


@dataclass
class FakeProcess:
    pid: int
    memory: Value = 0
    kinds: tuple[str, ...] = ("compute",)
    gpu_instance: int | None = None
    compute_instance: int | None = None
    sm: Value = 0
    mem: Value = 0
    enc: Value = 0
    dec: Value = 0

    def line(self) -> str:
        instance = {"gi": self.gpu_instance, "ci": self.compute_instance}
        use = {"sm": self.sm, "mem": self.mem, "enc": self.enc, "dec": self.dec}
        words = [f"{name}={number}" for name, number in instance.items() if number is not None]
        words += [f"{name}={value}" for name, value in use.items() if value != 0]
        return " ".join(["process", str(self.pid), str(self.memory), ",".join(self.kinds) or "ended", *words])


@dataclass
class FakeMig:
    """A MIG instance. `index` is its place among the card's handles; gaps are allowed."""

    uuid: str
    index: int
    gpu_instance: int
    compute_instance: int = 0
    profile: str = "1g.18gb"
    memory_total: int = 16 << 30
    memory_used: Value = 0
    multiprocessors: int = 16
    gpu_slices: int = 1
    compute_slices: int = 1
    values: dict[str, Value] = field(default_factory=dict)
    gpm: dict[int, Value] = field(default_factory=dict)

    def lines(self) -> list[str]:
        values: dict[str, Value] = {
            "memory_total": self.memory_total,
            "memory_used": self.memory_used,
            "multiprocessors": self.multiprocessors,
            "slices_gpu": self.gpu_slices,
            "slices_compute": self.compute_slices,
        }
        head = f"instance {self.index} {self.uuid} {self.gpu_instance} {self.compute_instance} {self.profile}"
        return [head, *_sets(values | self.values), *_sets(indexed("gpm", self.gpm))]


@dataclass
class FakeGpu:
    """A card. `values` are `set` keys such as `power` or `clock[1]`; `fields` go by id or by (id, scope)."""

    uuid: str
    name: str = "NVIDIA Fake GPU"
    pci_bus_id: str = ""
    vbios: str = ""
    serial: str = ""
    inforom: dict[int, str] = field(default_factory=dict)  # OEM, ECC, power, and the whole image
    mig_enabled: bool = False
    values: dict[str, Value] = field(default_factory=dict)
    fields: dict[int | tuple[int, int], Value] = field(default_factory=dict)
    gpm: dict[int, Value] = field(default_factory=dict)
    migs: list[FakeMig] = field(default_factory=list)
    processes: list[FakeProcess] = field(default_factory=list)

    def lines(self) -> list[str]:
        texts = {"name": self.name, "pci": self.pci_bus_id, "vbios": self.vbios, "serial": self.serial}
        values = {"mig_mode": int(self.mig_enabled)} | self.values
        return [
            f"gpu {self.uuid}",
            *(f"{key} {text}" for key, text in texts.items() if text),
            *(f"inforom {number} {text}" for number, text in self.inforom.items()),
            *_sets(values),
            *_sets(indexed("field", self.fields)),
            *_sets(indexed("gpm", self.gpm)),
            *(process.line() for process in self.processes),
            *(line for mig in self.migs for line in mig.lines()),
        ]


@dataclass
class FakeFault:
    """What goes wrong: `return CODE`, `delay MICROSECONDS`, `hang`, `crash` or `sentinel`.

    `call` is a C symbol or `*`. `device` is a GPU's index, `GPU:INSTANCE`, or `*`: any, or none at all.
    """

    what: str
    call: str = "*"
    device: int | str = "*"
    times: int | None = None

    def line(self) -> str:
        limit = "" if self.times is None else f" times {self.times}"
        return f"fault {self.call} {self.device} {self.what}{limit}"


@dataclass
class FakeEvent:
    """An XID, delivered once if its sequence number is above its GPU's last one."""

    gpu: int
    xid: int
    sequence: int

    def line(self) -> str:
        return f"event {self.gpu} {self.xid} {self.sequence}"


@dataclass
class FakeNode:
    """A whole node. `epoch` is a `time.monotonic()`; with it, counters go on in a process started later."""

    gpus: list[FakeGpu] = field(default_factory=list)
    driver: str = "580.159.04"
    nvml: str = "13.580.159.04"
    cuda: int = 13000
    init_result: int = 0
    epoch: float | None = None
    delays: dict[str, float] = field(default_factory=dict)
    faults: list[FakeFault] = field(default_factory=list)
    events: list[FakeEvent] = field(default_factory=list)

    def text(self) -> str:
        lines = [
            f"driver {self.driver}",
            f"nvml {self.nvml}",
            f"cuda {self.cuda}",
            f"init {self.init_result}",
            *([] if self.epoch is None else [f"epoch {self.epoch}"]),
            *(f"delay {call} {micros}" for call, micros in self.delays.items()),
            *(fault.line() for fault in self.faults),
            *(line for gpu in self.gpus for line in gpu.lines()),
            *(event.line() for event in self.events),
        ]
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """Replaces the script at once. Every NVML call that begins after this sees the new one."""
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(self.text(), errors="surrogateescape")
        # The kernel stamps files by a coarse clock; two quick writes must not look like one.
        os.utime(part, ns=(time.time_ns(), time.time_ns()))
        part.replace(path)
        time.sleep(_SETTLE_SECONDS)

    def make_device_files(self, directory: Path) -> None:
        """Files for FAKENVML_DEV, which the library opens as the real one opens /dev/nvidia*."""
        directory.mkdir(parents=True, exist_ok=True)
        minors = (gpu.values.get("minor", index) for index, gpu in enumerate(self.gpus))
        for name in ("nvidiactl", *(f"nvidia{minor}" for minor in minors)):
            (directory / name).touch()


def environment(library: Path, script: Path, *, devices: Path | None = None, log: Path | None = None) -> dict[str, str]:
    """Environment variables under which a new process finds the fake as its NVML."""
    variables = {"LD_LIBRARY_PATH": str(library.parent), "FAKENVML_SCRIPT": str(script)}
    if devices is not None:
        variables["FAKENVML_DEV"] = str(devices)
    if log is not None:
        variables["FAKENVML_LOG"] = str(log)
    return variables


def indexed(key: str, values: Mapping[Any, Value]) -> dict[str, Value]:
    """Keys with one argument, or with two given as a tuple."""
    return {f"{key}[{_index(index)}]": value for index, value in values.items()}


def _index(index: int | tuple[int, int]) -> str:
    return str(index) if isinstance(index, int) else f"{index[0]},{index[1]}"


def _sets(values: Mapping[str, Value]) -> Iterable[str]:
    return (f"set {key} {value}" for key, value in values.items())
