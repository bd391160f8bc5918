"""Reads a GPU: its facts once, its readings each cycle."""

import time
from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any

import pynvml
from msgspec.structs import replace

from podgpu.model import SEES_ALL, BusyWindow, Device, Fault, Gpu, Reading, Refused, value_of
from podgpu.sources.child import sees_node
from podgpu.sources.nvml import failure, plan
from podgpu.sources.nvml.gpm import BusySampler, Profiler
from podgpu.sources.nvml.handle import CallTracker, Handle
from podgpu.sources.nvml.mig import InstanceReaders
from podgpu.sources.nvml.process import DriverWindows, running
from podgpu.sources.nvml.utilization import BUSY, Utilization
from podgpu.sources.nvml.window_split import WindowSplitter

SLOW_SECONDS = 30.0  # between two readings of slow values: together they cost more than a cycle
COSTLY_SECONDS = 4.5  # between two of costly counters: at the default interval they are read in every cycle
MIG_MODE_SECONDS = 5.0  # between two checks of the MIG mode
NO_PAUSE = 0.05  # of a window; the driver's figure is off by some per cent

SEES_SOME = replace(SEES_ALL, sees_all=False)

# Facts that are asked for again while a card refuses them, and what every card should answer unless it is in MIG mode.
FACTS = ("nvmlDeviceGetName", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetPciInfo", "nvmlDeviceGetNumGpuCores")
EXPECTED = (
    "nvmlDeviceGetName",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleGet",
)

ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
# nvmlBrandType_t, in DCGM's words.
BRANDS = {
    1: "Quadro", 2: "Tesla", 3: "NVS", 4: "Grid", 5: "GeForce", 6: "Titan",
    7: "NVIDIA Virtual Applications", 8: "NVIDIA Virtual PC", 9: "NVIDIA Virtual Compute Server",
    10: "NVIDIA RTX Virtual Workstation", 11: "NVIDIA vGaming",
    12: "Quadro RTX", 13: "NVIDIA RTX", 14: "NVIDIA", 15: "GeForce RTX", 16: "Titan RTX",
}  # fmt: skip


class GpuReader:
    """Reads a GPU. Only `read` and `sample_busy` call NVML, and they run in the GPU's own thread.

    `has_pauses` says that the card worked and rested within one of the last windows, so that busy samples tell more.
    """

    def __init__(self, raw: Any, uuid: str, index: int, tracker: CallTracker) -> None:
        self.gpu = Gpu(uuid=uuid, index=index)
        self.fault: Fault | None = None
        self._tracker = tracker
        self._adopt(raw)

    def _adopt(self, raw: Any) -> None:
        self._next_raw: Any = None
        self._handle = Handle(raw, self._tracker)
        self._facts_due = 0.0
        self._utilization = Utilization(self._handle)
        self._windows = DriverWindows(self._handle)
        self._instances = InstanceReaders(self._handle)
        self._profiler = Profiler(self._handle)
        self._busy_sampler = BusySampler(self._handle)
        self._splitter = WindowSplitter()
        self.has_pauses = True
        self._costly = plan.CachedReadings(plan.COSTLY, COSTLY_SECONDS)
        self._slow = plan.CachedReadings(plan.SLOW, SLOW_SECONDS)
        self._pids: frozenset[int] = frozenset()
        self._mig_mode_due = 0.0

    def reopen(self, raw: Any, index: int) -> None:
        """Start over with a fresh handle at the next read. After a fault, what was remembered may be wrong."""
        self.gpu = replace(self.gpu, index=index)
        self._next_raw = raw

    def sample_busy(self) -> None:
        """Sample how busy the card is, if it can be profiled. Windows are split by these samples."""
        if not self._profiler.is_open or self._next_raw is not None or self.gpu.mig_enabled:
            return
        try:
            self._busy_sampler.sample()
        except failure.NvmlFailure:  # the next reading reports it
            self._busy_sampler.close()

    def read(self, *, windows: bool = False, busy_samples: bool = False, brief: bool = False) -> Device:
        """Read everything, the driver's windows only with `windows`. Without `busy_samples`, sampling has ended.

        A `brief` reading leaves out what takes long.
        A card that cannot be read gives a device with a fault; a lost session raises.
        """
        began = time.monotonic()
        self.fault = None
        if self._next_raw is not None:
            self._close()
            self._adopt(self._next_raw)
        if not busy_samples:
            self._busy_sampler.close()
        if not windows:
            self._windows.skip()
            self._splitter = WindowSplitter()
        try:
            device = self._read(windows=windows, brief=brief)
        except failure.CardLost as lost:
            self.fault = lost.fault
        except failure.SessionFailed:
            raise
        except Exception as error:  # a bug must not cost the other cards
            self.fault = failure.unforeseen(error)
        if self.fault:
            device = Device(gpu=self.gpu, fault=self.fault)
        return replace(device, at=began, seconds=time.monotonic() - began)

    def _read(self, *, windows: bool, brief: bool) -> Device:
        self._refresh_facts()
        self._profiler.open()
        before = Counter(self._tracker.errors)
        quick = tuple(self._quick_readings(brief=brief))
        failed = self._tracker.errors - before
        # Values of half a minute ago say nothing about a card whose every call fails now.
        leaves_out_slow = bool(quick and brief) or bool(failed and not quick)
        readings = quick if leaves_out_slow else (*quick, *self._slow.get(self._handle))
        if not readings:
            errors = (failed or self._tracker.errors).most_common(1)
            self.fault = Fault(reason=errors[0][0] if errors else "no_data", detail="no call answered")
            return Device(gpu=self.gpu, fault=self.fault)
        if self.gpu.mig_enabled:
            instances, listing = self._instances.read(brief=brief)
            processes = listing.processes
        else:
            instances, listing = (), running(self._handle, value_of(readings, "memory_total_bytes"))
            is_busy = (value_of(readings, "utilization_ratio") or 0.0) >= BUSY
            processes = self._utilization.apply(listing.processes, is_busy=is_busy)
            self.gpu = replace(self.gpu, sampled_by=self._utilization.chosen)
        # Energy is best attributed if it is read whenever the processes change.
        pids = frozenset(process.pid for process in listing.processes)
        readings = (*readings, *self._costly.get(self._handle, anew=pids != self._pids))
        self._pids = pids
        # The driver hides the processes of other PID namespaces, so an empty list may not mean that there are none.
        is_complete = listing.is_complete and (bool(listing.processes) or sees_node())
        if is_complete:
            readings = (*readings, Reading("processes", len(listing.processes)))
        return Device(
            gpu=self.gpu,
            readings=readings,
            instances=instances,
            processes=processes,
            ability=SEES_ALL if is_complete else SEES_SOME,
            refused=tuple(self._refused()),
            windows=self._split_windows() if windows and not self.gpu.mig_enabled else (),
        )

    def _split_windows(self) -> tuple[BusyWindow, ...]:
        found = self._windows.read()
        split = self._splitter.split(found, self._busy_sampler.drain())
        if found:
            self.has_pauses = any(map(_has_pause, found))
        if not self.has_pauses:  # the next sample begins anew
            self._busy_sampler.close()
        return split

    def _refused(self) -> Iterator[Refused]:
        """List refused calls that matter: those answered before, and those that every card should answer."""
        refusals = self._handle.refusals
        missed = dict(refusals.withdrawn())
        for call in () if self.gpu.mig_enabled else EXPECTED:
            code = refusals.code((call, ()))
            if code is not None and self._handle.lacks(call):
                missed[call, ()] = code
        for call, code in sorted({(name, code) for (name, _), code in missed.items()}):
            yield Refused(call=call.removeprefix("nvmlDeviceGet").removeprefix("nvml"), reason=failure.reason(code))

    def _quick_readings(self, *, brief: bool) -> Iterator[Reading]:
        yield from plan.read(plan.EVERY_CYCLE, self._handle)
        if not brief:
            yield from self._profiler.read()

    def _close(self) -> None:
        self._instances.close()
        self._busy_sampler.close()
        self._profiler.close()

    def _refresh_facts(self) -> None:
        """Read the facts once, but check the MIG mode: when it changes, so does what the card refuses."""
        if (now := time.monotonic()) >= self._mig_mode_due:
            mig_enabled = self._mig_enabled()
            if mig_enabled != self.gpu.mig_enabled:
                self._close()
                self._adopt(self._handle.raw)
            self.gpu = replace(self.gpu, mig_enabled=mig_enabled)
            self._mig_mode_due = now + MIG_MODE_SECONDS
        if now < self._facts_due:
            return
        self.gpu = _facts(self._handle, self.gpu)
        # What is missing may have been refused by mistake.
        self._facts_due = now + SLOW_SECONDS if any(map(self._handle.refuses, FACTS)) else inf

    def _mig_enabled(self) -> bool:
        mode = self._handle.get("MigMode")
        return bool(mode[0]) if mode else self.gpu.mig_enabled


def _has_pause(window: BusyWindow) -> bool:
    return NO_PAUSE < window.busy_ns / (window.end_ns - window.begin_ns) < 1 - NO_PAUSE


def _facts(handle: Handle, known: Gpu) -> Gpu:
    pci = handle.get("PciInfo")
    capability = handle.get("CudaComputeCapability")
    return Gpu(
        uuid=known.uuid,
        index=known.index,
        minor=_else(handle.get("MinorNumber"), known.minor),
        model=handle.get("Name") or known.model,
        pci_bus_id=_text(pci.busId) if pci else known.pci_bus_id,
        architecture=ARCHITECTURES.get(handle.get("Architecture") or 0, known.architecture),
        compute_capability="{}.{}".format(*capability) if capability else known.compute_capability,
        vbios=handle.get("VbiosVersion") or known.vbios,
        brand=BRANDS.get(handle.get("Brand") or 0, known.brand),
        serial=handle.get("Serial") or known.serial,
        inforom_image=handle.get("InforomImageVersion") or known.inforom_image,
        inforom_oem=handle.get("InforomVersion", pynvml.NVML_INFOROM_OEM) or known.inforom_oem,
        inforom_ecc=handle.get("InforomVersion", pynvml.NVML_INFOROM_ECC) or known.inforom_ecc,
        inforom_power=handle.get("InforomVersion", pynvml.NVML_INFOROM_POWER) or known.inforom_power,
        mig_enabled=known.mig_enabled,
        multiprocessors=_else(_multiprocessors(handle.get("NumGpuCores"), capability), known.multiprocessors),
    )


def _else(found: int | None, known: int | None) -> int | None:
    return known if found is None else found


def _multiprocessors(cores: int | None, capability: tuple[int, int] | None) -> int | None:
    """NVML reports cores. Chips of these compute capabilities have 64 per multiprocessor, others 128."""
    if cores is None or capability is None:
        return None
    per_multiprocessor = 64 if capability in ((6, 0), (7, 0), (7, 5), (8, 0)) else 128
    return cores // per_multiprocessor


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
