"""Whole nodes for the fake NVML library, and the H200 they are made of."""

from tests.fakenvml.script import (
    UNKNOWN,
    FakeEvent,
    FakeFault,
    FakeGpu,
    FakeMig,
    FakeNode,
    FakeProcess,
    Value,
    environment,
    grows,
    indexed,
    refused,
    swings,
    typed,
)

__all__ = [
    "UNKNOWN",
    "FakeEvent",
    "FakeFault",
    "FakeGpu",
    "FakeMig",
    "FakeNode",
    "FakeProcess",
    "Value",
    "eight_gpu_node",
    "environment",
    "grows",
    "h200",
    "h200_delays",
    "make_processes",
    "refused",
    "swings",
    "typed",
]


def make_processes(count: int, first_pid: int = 10_000, memory: int = 1 << 28, sm: Value = 1) -> list[FakeProcess]:
    return [FakeProcess(first_pid + i, memory, sm=sm) for i in range(count)]


def h200(index: int) -> FakeGpu:
    """A busy H200 with the answers a real one gave under load, and counters that move."""
    return FakeGpu(
        uuid=f"GPU-{index:08x}-4a11-4b22-8c33-{index:012x}",
        name="NVIDIA H200",
        pci_bus_id=f"00000000:{0x1B + 0x10 * index:02X}:00.0",
        vbios="96.00.BC.00.01",
        serial=f"165442400{index:04d}",
        inforom={0: "2.1", 1: "7.16", 3: "G520.0282.02.02"},
        values=_h200_values(index),
        fields=_h200_fields(),
        gpm=dict(_H200_GPM),
    )


def eight_gpu_node(processes: int = 64) -> FakeNode:
    """Eight H200s, GPU 2 cut into seven MIG instances, the processes dealt round over cards and instances."""
    node = FakeNode([h200(index) for index in range(8)])
    _cut(node.gpus[2])
    for number, process in enumerate(make_processes(processes)):
        gpu = node.gpus[number % 8]
        gpu.processes.append(process)
        if gpu.migs:
            mig = gpu.migs[number // 8 % len(gpu.migs)]
            process.gpu_instance, process.compute_instance = mig.gpu_instance, mig.compute_instance
    return node


def h200_delays() -> dict[str, float]:
    """Microseconds each call took on a real H200 with no cached answer, as for a caller every few seconds.

    The bindings call process lists and process utilization twice, so each call has half of what was measured.
    """
    return dict(_H200_CALL_DELAYS) | {
        f"nvmlDeviceGetFieldValues[{id_}]": micros for ids, micros in _H200_FIELD_DELAYS.items() for id_ in ids
    }


def _cut(gpu: FakeGpu) -> None:
    gpu.mig_enabled = True
    gpu.migs = [
        FakeMig(
            uuid=f"MIG-{index:08x}-7c44-5d55-9e66-{gpu.uuid[-12:]}",
            index=index,
            gpu_instance=7 + index,
            memory_used=1 << 30,
            gpm=dict(_H200_GPM),
        )
        for index in range(7)
    ]


def _h200_values(index: int) -> dict[str, Value]:
    numbers: dict[str, Value] = {
        "minor": index,
        "architecture": 9,
        "capability[0]": 9,
        "capability[1]": 0,
        "cores": 16896,
        "compute_mode": 0,
        "persistence": 1,
        "multiprocessors": 132,
        "memory_total": 150_754_820_096,
        "memory_reserved": 644_939_776,
        "memory_used": 1_848_049_664,
        "bar1_total": 256 << 30,
        "brand": 14,
        "bar1_used": 1 << 20,
        "utilization_gpu": 96,
        "utilization_memory": 22,
        "power": 690_375,
        "power_limit": 700_000,
        "power_limit_enforced": 700_000,
        "energy": grows(10**9, 690_375),
        "temperature[0]": 56,
        "performance_state": 0,
        "clocks_event_reasons": 4,
        "encoder": 0,
        "decoder": 0,
        "jpg": 0,
        "ofa": 0,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "pcie_throughput[0]": 3_900,
        "pcie_throughput[1]": 5_200,
        "pcie_replays": 0,
    }
    return numbers | _h200_tables()


def _h200_tables() -> dict[str, Value]:
    """Readings that take an argument: clocks and thresholds by type, error counts, violation times in ns."""
    clocks = dict(enumerate((1500, 1500, 3201, 1305)))
    maxima = dict(enumerate((1980, 1980, 3201, 1545)))
    thresholds = dict(enumerate((95, 92, 105, 87)))
    violations: dict[int, Value] = dict.fromkeys((*range(6), 10, 11), 0)
    return (
        indexed("clock", clocks)
        | indexed("clock_max", maxima)
        | indexed("clock_application", {0: 1980, 2: 3201})
        | indexed("threshold", thresholds)
        | indexed("remapped", dict.fromkeys(range(4), 0))
        | indexed("ecc", {(kind, counter): 0 for kind in (0, 1) for counter in (0, 1)})
        | indexed("violation", violations | {0: grows(10**12, 4 * 10**8)})
    )


def _h200_fields() -> dict[int | tuple[int, int], Value]:
    nothing = (
        *range(3, 7),
        *range(75, 80),
        94,
        *range(142, 146),
        *range(173, 184),
        226,
        227,
        230,
        *range(269, 272),
    )
    watts = {185: 690_375, 186: 691_220, 187: 200_000, 188: 700_000, 189: 700_000, 190: 700_000, 192: 700_000}
    fields: dict[int | tuple[int, int], Value] = dict.fromkeys((*nothing, 301, 302), 0)
    fields |= {id_: typed(milliwatts, "uint") for id_, milliwatts in watts.items()}
    fields |= {82: typed(51, "uint"), 74: grows(10**12, 4 * 10**8)}
    fields |= dict.fromkeys((83, 191), grows(10**9, 690_375))
    return fields | {197: grows(10**10, 4_000_000), 198: grows(10**10, 5_300_000)}


_H200_GPM: dict[int, Value] = {
    **dict.fromkeys((6, 8, 9, 11, 12, 13), 0.0),
    1: 96.0,
    2: 89.3,
    3: 13.2,
    4: 1.3,
    5: 86.7,
    7: 86.7,
    10: 15.3,
    20: 3.8,
    21: 5.1,
}

_H200_CALL_DELAYS: dict[str, float] = {
    "nvmlInitWithFlags": 11_000,
    "nvmlShutdown": 4_500,
    "nvmlDeviceGetUtilizationRates": 3_000,
    "nvmlDeviceGetMemoryInfo": 9,
    "nvmlDeviceGetMemoryInfo_v2": 9,
    "nvmlDeviceGetPowerUsage": 2_000,
    "nvmlDeviceGetTotalEnergyConsumption": 2_900,
    "nvmlDeviceGetTemperature": 600,
    "nvmlDeviceGetTemperatureV": 600,
    "nvmlDeviceGetClockInfo": 2,
    "nvmlDeviceGetEncoderUtilization": 2,
    "nvmlDeviceGetDecoderUtilization": 2,
    "nvmlDeviceGetCurrentClocksEventReasons": 2,
    "nvmlDeviceGetComputeRunningProcesses_v3": 28,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": 21,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": 21,
    "nvmlDeviceGetProcessUtilization": 950,
    "nvmlDeviceGetProcessesUtilizationInfo": 950,
    "nvmlDeviceGetMigMode": 110,
    "nvmlDeviceGetMaxMigDeviceCount": 110,
    "nvmlDeviceGetPcieThroughput": 20_700,
    "nvmlDeviceGetCurrPcieLinkGeneration": 2,
    "nvmlDeviceGetCurrPcieLinkWidth": 32,
    "nvmlDeviceGetTotalEccErrors": 3,
    "nvmlDeviceGetRemappedRows": 3,
    "nvmlDeviceGetViolationStatus": 500,
    "nvmlDeviceGetBAR1MemoryInfo": 113,
    "nvmlDeviceGetTemperatureThreshold": 113,
    "nvmlDeviceGetNumGpuCores": 113,
    "nvmlGpmSampleGet": 700,
    "nvmlGpmMigSampleGet": 700,
    "nvmlGpmMetricsGet": 4_100,
}

_H200_FIELD_DELAYS: dict[tuple[int, ...], float] = {
    (3, 4, 5, 6, 74, 75, 76, 77, 78, 79, 186, 269, 270, 271): 4,
    (142, 143, 144, 145, 187, 188, 189, 190, 192, 301, 302): 5,
    (82,): 392,
    (83, 191): 3_000,
    (94,): 324,
    tuple(range(173, 184)): 126,
    (185,): 550,
    (197, 198): 250,
    (226, 227, 230): 100,
}
