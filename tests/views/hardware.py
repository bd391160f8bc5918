"""The cards of the quirky node, as a source reports them."""

from podgpu.model import Device, Fault, Gpu, Instance, MigInstance, Reading

GIB = 2**30

BUSY = Device(
    gpu=Gpu(
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        index=0,
        minor=0,
        model="NVIDIA H200",
        pci_bus_id="00000000:18:00.0",
        architecture="hopper",
        compute_capability="9.0",
        vbios="96.00.CF.00.01",
    ),
    readings=(
        Reading("utilization_ratio", 0.97),
        Reading("memory_total_bytes", 150754820096),
        Reading("memory_used_bytes", 30.5 * GIB),
        Reading("memory_free_bytes", float("nan")),
        Reading("power_watts", 690.375),
        Reading("energy_joules_total", 123456789.012),
        Reading("temperature_celsius", 56.0, ("gpu",)),
        Reading("temperature_celsius", 61.0, ("memory",)),
        Reading("temperature_celsius", 99.0),
        Reading("sm_active_ratio", 0.893),
        Reading("tensor_active_ratio", 0.1 + 0.2),
        Reading("dram_active_ratio", 1.53e-7),
        Reading("no_such_metric", 1.0),
    ),
)

SPLIT = Device(
    gpu=Gpu(
        uuid="GPU-11111111-1111-1111-1111-111111111111",
        index=1,
        minor=1,
        model="NVIDIA H200",
        mig_enabled=True,
    ),
    # A card in MIG mode does not say how busy it is.
    readings=(
        Reading("memory_total_bytes", 150754820096),
        Reading("memory_used_bytes", 17.25 * GIB),
        Reading("power_watts", 214.0),
    ),
    instances=(
        Instance(
            mig=MigInstance(
                uuid="MIG-aaaaaaaa-0000-0000-0000-000000000000",
                gpu_instance_id=2,
                compute_instance_id=0,
                profile="3g.71gb",
                multiprocessors=60,
            ),
            readings=(
                Reading("memory_total_bytes", 70 * GIB),
                Reading("memory_used_bytes", 17 * GIB),
                Reading("sm_active_ratio", 0.5),
            ),
        ),
        Instance(
            mig=MigInstance(
                uuid="MIG-bbbbbbbb-0000-0000-0000-000000000000",
                gpu_instance_id=9,
                compute_instance_id=0,
                profile="1g.18gb",
            )
        ),
    ),
)

STUCK = Device(
    gpu=Gpu(uuid="GPU-22222222-2222-2222-2222-222222222222", index=2, model="NVIDIA H200"),
    fault=Fault(reason="timeout", call="nvmlDeviceGetPowerUsage", seconds=12.5),
)

HOSTILE = Device(
    gpu=Gpu(
        uuid='GPU-"evil"\\\n\x00\x1b[31m\ud800',
        index=3,
        model='<script>alert("1")</script> [red]ü💥[/red] ' + "x" * 300,
        vbios="a\\nb",
    )
)
