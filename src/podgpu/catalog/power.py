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
_THRESHOLD = "Temperature at which the card acts."
_MARGIN_THRESHOLD = (
    "Value of temperature_margin_celsius at which the card acts. Below 0 is hotter than the target."
)

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
    gauge(
        "podgpu_gpu_power_limit_requested_watts",
        "Power limit an administrator has asked for.",
        Field(192, MILLIWATTS),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS",
        dcgm_help="Requested board power limit ({unit}).",
        dcgm_unit=WATTS,
    ),
    gauge(
        "podgpu_gpu_power_limit_default_watts",
        "Power limit the card starts with.",
        Field(189, MILLIWATTS),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",
        dcgm_help="Default board power limit ({unit}).",
        dcgm_unit=WATTS,
    ),
    gauge(
        "podgpu_gpu_power_limit_min_watts",
        "Lowest power limit that can be set.",
        Field(187, MILLIWATTS),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS",
        dcgm_help="Minimum board power limit ({unit}).",
        dcgm_unit=WATTS,
    ),
    gauge(
        "podgpu_gpu_power_limit_max_watts",
        "Highest power limit that can be set.",
        Field(188, MILLIWATTS),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS",
        dcgm_help="Maximum board power limit ({unit}).",
        dcgm_unit=WATTS,
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
    gauge(
        "podgpu_gpu_temperature_threshold_celsius",
        _THRESHOLD,
        Call("TemperatureThreshold", CELSIUS, (SHUTDOWN,)),
        labels={"threshold": "shutdown"},
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_SHUTDOWN_TEMP DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
        dcgm_help="Shutdown temperature ({unit}).",
    ),
    gauge(
        "podgpu_gpu_temperature_threshold_celsius",
        _THRESHOLD,
        Call("TemperatureThreshold", CELSIUS, (SLOWDOWN,)),
        labels={"threshold": "slowdown"},
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_SLOWDOWN_TEMP DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS",
        dcgm_help="Slowdown temperature ({unit}).",
    ),
    gauge(
        "podgpu_gpu_temperature_threshold_celsius",
        _THRESHOLD,
        Call("TemperatureThreshold", CELSIUS, (MEMORY_MAX,)),
        labels={"threshold": "memory_max"},
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_MEM_MAX_OP_TEMP DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
        dcgm_help="Maximum operating temperature of the memory ({unit}).",
    ),
    gauge(
        "podgpu_gpu_temperature_threshold_celsius",
        _THRESHOLD,
        Call("TemperatureThreshold", CELSIUS, (GPU_MAX,)),
        labels={"threshold": "gpu_max"},
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_GPU_MAX_OP_TEMP DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS",
        dcgm_help="Maximum operating temperature of the GPU ({unit}).",
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
