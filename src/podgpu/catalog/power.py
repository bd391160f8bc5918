"""Power, energy and heat."""

from podgpu.catalog.row import (
    CELSIUS,
    CORE,
    COSTLY,
    DETAIL,
    EXPERIMENTAL,
    MILLIJOULES,
    MILLIWATTS,
    SLOW,
    WATTS,
    Call,
    Field,
    Metric,
    OtelName,
    counter,
    gauge,
)

# nvmlTemperatureSensors_t and nvmlTemperatureThresholds_t
GPU_SENSOR = 0
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = 0, 1, 2, 3

_TEMPERATURE = "Temperature, by sensor."
_MAXIMUM = "Maximum operating temperature"
_MARGIN_THRESHOLD = "Value of temperature_margin_celsius at which the card acts. Below 0 is hotter than the target."

POWER: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_power_watts",
        "Power draw of the board; a mean over one second on Ampere (except GA100) and newer cards.",
        # The call rather than field 185: nvidia-smi shows the same, and drivers before R530 have no power fields.
        Call("PowerUsage", MILLIWATTS),
        worth=CORE,
        dcgm="DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_BOARD_POWER_WATTS dcgm_power_usage",
        dcgm_help="Power draw ({unit}).",
        dcgm_unit=WATTS,
        otel=OtelName("hw.power", (("hw.type", "gpu"),)),
    ),
    gauge(
        "podgpu_gpu_power_instant_watts",
        "Power draw of the board at this instant. Needs driver R530 or newer.",
        Field(186, MILLIWATTS),
        dcgm="DCGM_FI_DEV_POWER_USAGE_INSTANT DCGM_FI_DEV_BOARD_POWER_RAW_WATTS",
        dcgm_help="Current instantaneous power draw ({unit}).",
        dcgm_unit=WATTS,
    ),
    counter(
        "podgpu_gpu_energy_joules_total",
        "Energy used since the driver was loaded.",
        Call("TotalEnergyConsumption", MILLIJOULES),
        cadence=COSTLY,
        worth=CORE,
        dcgm="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL dcgm_total_energy_consumption",
        dcgm_help="Total energy consumption since boot ({unit}).",
        otel=OtelName("hw.energy", (("hw.type", "gpu"),)),
    ),
)

LIMITS: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_power_limit_watts",
        "Power limit in force, with all limiters taken into account.",
        # The call rather than field 190, for the same old drivers.
        Call("EnforcedPowerLimit", MILLIWATTS),
        cadence=SLOW,
        worth=CORE,
        dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",
        dcgm_help="Enforced board power limit ({unit}).",
        dcgm_unit=WATTS,
    ),
    *(
        gauge(
            f"podgpu_gpu_power_limit_{which}_watts",
            help_text,
            Field(field, MILLIWATTS),
            cadence=SLOW,
            dcgm=f"DCGM_FI_DEV_POWER_MGMT_LIMIT{dcgm} DCGM_FI_DEV_BOARD_POWER_LIMIT_{which.upper()}_WATTS",
            dcgm_help=f"{words} board power limit ({{unit}}).",
            dcgm_unit=WATTS,
        )
        for which, help_text, field, dcgm, words in (
            ("requested", "Power limit an administrator has asked for.", 192, "", "Requested"),
            ("default", "Power limit the card starts with.", 189, "_DEF", "Default"),
            ("min", "Lowest power limit that can be set.", 187, "_MIN", "Minimum"),
            ("max", "Highest power limit that can be set.", 188, "_MAX", "Maximum"),
        )
    ),
)

HEAT: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_temperature_celsius",
        _TEMPERATURE,
        Call("Temperature", CELSIUS, (GPU_SENSOR,)),
        labels={"sensor": "gpu"},
        worth=CORE,
        dcgm="DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_GPU_TEMP_CELSIUS dcgm_gpu_temp",
        dcgm_help="GPU temperature ({unit}).",
        otel=OtelName("hw.temperature", (("hw.sensor_location", "gpu"),)),
    ),
    gauge(
        "podgpu_gpu_temperature_celsius",
        _TEMPERATURE,
        Field(82, CELSIUS),
        labels={"sensor": "memory"},
        worth=CORE,
        dcgm="DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_MEMORY_TEMP_CELSIUS dcgm_memory_temp",
        dcgm_help="Memory temperature ({unit}).",
        otel=OtelName("hw.temperature", (("hw.sensor_location", "memory"),)),
    ),
    gauge(
        "podgpu_gpu_temperature_margin_celsius",
        "How much hotter the GPU may get before it slows down.",
        Call("MarginTemperature", CELSIUS),
        cadence=SLOW,
        dcgm="- DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS",
        dcgm_help="Distance to the slowdown threshold ({unit}).",
    ),
    *(
        gauge(
            "podgpu_gpu_temperature_threshold_celsius",
            "Temperature at which the card acts.",
            Call("TemperatureThreshold", CELSIUS, (number,)),
            labels={"threshold": threshold},
            cadence=SLOW,
            worth=DETAIL,
            dcgm=f"DCGM_FI_DEV_{dcgm}_TEMP DCGM_FI_DEV_{dcgm49}_CELSIUS",
            dcgm_help=f"{words} ({{unit}}).",
        )
        for threshold, number, dcgm, dcgm49, words in (
            ("shutdown", SHUTDOWN, "SHUTDOWN", "GPU_TEMP_SHUTDOWN", "Shutdown temperature"),
            ("slowdown", SLOWDOWN, "SLOWDOWN", "GPU_TEMP_SLOWDOWN", "Slowdown temperature"),
            ("memory_max", MEMORY_MAX, "MEM_MAX_OP", "MEMORY_MAX_OP_TEMP", f"{_MAXIMUM} of the memory"),
            ("gpu_max", GPU_MAX, "GPU_MAX_OP", "GPU_MAX_OP_TEMP", f"{_MAXIMUM} of the GPU"),
        )
    ),
    *(
        gauge(
            "podgpu_gpu_temperature_margin_threshold_celsius",
            _MARGIN_THRESHOLD,
            Field(field, CELSIUS),
            labels={"threshold": threshold},
            cadence=SLOW,
            worth=DETAIL,
            stability=EXPERIMENTAL,
        )
        for threshold, field in (("shutdown", 193), ("slowdown", 194), ("memory_max", 195), ("gpu_max", 196))
    ),
)
