"""Power, energy and heat."""

from podgpu.catalog.row import Alias, Cadence, Call, Field, Kind, Metric, OtelName, Stability, Worth
from podgpu.catalog.units import CELSIUS, JOULES, MILLIJOULES, MILLIWATTS, WATTS

# nvmlTemperatureSensors_t and nvmlTemperatureThresholds_t
GPU_SENSOR = 0
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = 0, 1, 2, 3

_TEMPERATURE = "Temperature, by sensor."
_THRESHOLD = "Temperature at which the card acts."
_MARGIN_THRESHOLD = (
    "Value of temperature_margin_celsius at which the card acts. Below 0 is hotter than the target."
)

POWER: tuple[Metric, ...] = (
    Metric(
        name="power_watts",
        kind=Kind.GAUGE,
        help="Power draw of the board; a mean over one second on Ampere (except GA100) and newer cards.",
        # The call rather than field 185: nvidia-smi shows the same, and drivers before R530 have no power fields.
        read=Call("PowerUsage", MILLIWATTS),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_POWER_USAGE", WATTS, "Power draw (in W)."),
        dcgm49=Alias("DCGM_FI_DEV_BOARD_POWER_WATTS", WATTS, "Power draw (in W)."),
        dcgm1x=Alias("dcgm_power_usage", WATTS, "Power draw (in W)."),
        otel=OtelName("hw.power", (("hw.type", "gpu"),)),
    ),
    Metric(
        name="power_instant_watts",
        kind=Kind.GAUGE,
        help="Power draw of the board at this instant. Needs driver R530 or newer.",
        read=Field(186, MILLIWATTS),
        dcgm=Alias("DCGM_FI_DEV_POWER_USAGE_INSTANT", WATTS, "Current instantaneous power draw (in W)."),
        dcgm49=Alias("DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", WATTS, "Current instantaneous power draw (in W)."),
    ),
    Metric(
        name="energy_joules_total",
        kind=Kind.COUNTER,
        help="Energy used since the driver was loaded.",
        read=Call("TotalEnergyConsumption", MILLIJOULES),
        worth=Worth.CORE,
        dcgm=Alias(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            MILLIJOULES,
            "Total energy consumption since boot (in mJ).",
            Kind.COUNTER,
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
            JOULES,
            "Total energy consumption since boot (in J).",
            Kind.COUNTER,
        ),
        dcgm1x=Alias(
            "dcgm_total_energy_consumption",
            MILLIJOULES,
            "Total energy consumption since boot (in mJ).",
            Kind.COUNTER,
        ),
        otel=OtelName("hw.energy", (("hw.type", "gpu"),)),
    ),
)

LIMITS: tuple[Metric, ...] = (
    Metric(
        name="power_limit_watts",
        kind=Kind.GAUGE,
        help="Power limit in force, with all limiters taken into account.",
        # The call rather than field 190, for the same old drivers.
        read=Call("EnforcedPowerLimit", MILLIWATTS),
        cadence=Cadence.SLOW,
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", WATTS, "Enforced board power limit (in W)."),
        dcgm49=Alias(
            "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", WATTS, "Enforced board power limit (in W)."
        ),
    ),
    Metric(
        name="power_limit_requested_watts",
        kind=Kind.GAUGE,
        help="Power limit an administrator has asked for.",
        read=Field(192, MILLIWATTS),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_POWER_MGMT_LIMIT", WATTS, "Requested board power limit (in W)."),
        dcgm49=Alias(
            "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", WATTS, "Requested board power limit (in W)."
        ),
    ),
    Metric(
        name="power_limit_default_watts",
        kind=Kind.GAUGE,
        help="Power limit the card starts with.",
        read=Field(189, MILLIWATTS),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", WATTS, "Default board power limit (in W)."),
        dcgm49=Alias(
            "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS", WATTS, "Default board power limit (in W)."
        ),
    ),
    Metric(
        name="power_limit_min_watts",
        kind=Kind.GAUGE,
        help="Lowest power limit that can be set.",
        read=Field(187, MILLIWATTS),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", WATTS, "Minimum board power limit (in W)."),
        dcgm49=Alias("DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS", WATTS, "Minimum board power limit (in W)."),
    ),
    Metric(
        name="power_limit_max_watts",
        kind=Kind.GAUGE,
        help="Highest power limit that can be set.",
        read=Field(188, MILLIWATTS),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", WATTS, "Maximum board power limit (in W)."),
        dcgm49=Alias("DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS", WATTS, "Maximum board power limit (in W)."),
    ),
)

HEAT: tuple[Metric, ...] = (
    Metric(
        name="temperature_celsius",
        kind=Kind.GAUGE,
        help=_TEMPERATURE,
        labels=(("sensor", "gpu"),),
        read=Call("Temperature", CELSIUS, (GPU_SENSOR,)),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_GPU_TEMP", CELSIUS, "GPU temperature (in C)."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_TEMP_CELSIUS", CELSIUS, "GPU temperature (in C)."),
        dcgm1x=Alias("dcgm_gpu_temp", CELSIUS, "GPU temperature (in C)."),
        otel=OtelName("hw.temperature", (("hw.sensor_location", "gpu"),)),
    ),
    Metric(
        name="temperature_celsius",
        kind=Kind.GAUGE,
        help=_TEMPERATURE,
        labels=(("sensor", "memory"),),
        read=Field(82, CELSIUS),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_MEMORY_TEMP", CELSIUS, "Memory temperature (in C)."),
        dcgm49=Alias("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", CELSIUS, "Memory temperature (in C)."),
        dcgm1x=Alias("dcgm_memory_temp", CELSIUS, "Memory temperature (in C)."),
        otel=OtelName("hw.temperature", (("hw.sensor_location", "memory"),)),
    ),
    Metric(
        name="temperature_margin_celsius",
        kind=Kind.GAUGE,
        help="How much hotter the GPU may get before it slows down.",
        read=Call("MarginTemperature", CELSIUS),
        cadence=Cadence.SLOW,
        dcgm49=Alias(
            "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS", CELSIUS, "Distance to the slowdown threshold (in C)."
        ),
    ),
    Metric(
        name="temperature_threshold_celsius",
        kind=Kind.GAUGE,
        help=_THRESHOLD,
        labels=(("threshold", "shutdown"),),
        read=Call("TemperatureThreshold", CELSIUS, (SHUTDOWN,)),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias("DCGM_FI_DEV_SHUTDOWN_TEMP", CELSIUS, "Shutdown temperature (in C)."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS", CELSIUS, "Shutdown temperature (in C)."),
    ),
    Metric(
        name="temperature_threshold_celsius",
        kind=Kind.GAUGE,
        help=_THRESHOLD,
        labels=(("threshold", "slowdown"),),
        read=Call("TemperatureThreshold", CELSIUS, (SLOWDOWN,)),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias("DCGM_FI_DEV_SLOWDOWN_TEMP", CELSIUS, "Slowdown temperature (in C)."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS", CELSIUS, "Slowdown temperature (in C)."),
    ),
    Metric(
        name="temperature_threshold_celsius",
        kind=Kind.GAUGE,
        help=_THRESHOLD,
        labels=(("threshold", "memory_max"),),
        read=Call("TemperatureThreshold", CELSIUS, (MEMORY_MAX,)),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias(
            "DCGM_FI_DEV_MEM_MAX_OP_TEMP", CELSIUS, "Maximum operating temperature of the memory (in C)."
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
            CELSIUS,
            "Maximum operating temperature of the memory (in C).",
        ),
    ),
    Metric(
        name="temperature_threshold_celsius",
        kind=Kind.GAUGE,
        help=_THRESHOLD,
        labels=(("threshold", "gpu_max"),),
        read=Call("TemperatureThreshold", CELSIUS, (GPU_MAX,)),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias(
            "DCGM_FI_DEV_GPU_MAX_OP_TEMP", CELSIUS, "Maximum operating temperature of the GPU (in C)."
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS", CELSIUS, "Maximum operating temperature of the GPU (in C)."
        ),
    ),
    *(
        Metric(
            name="temperature_margin_threshold_celsius",
            kind=Kind.GAUGE,
            stability=Stability.EXPERIMENTAL,
            help=_MARGIN_THRESHOLD,
            labels=(("threshold", threshold),),
            read=Field(field, CELSIUS),
            cadence=Cadence.SLOW,
            worth=Worth.DETAIL,
        )
        for threshold, field in (("shutdown", 193), ("slowdown", 194), ("memory_max", 195), ("gpu_max", 196))
    ),
)
