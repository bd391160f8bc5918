"""The books: what each container uses of a GPU, what belongs to no container, and the sum of both."""

from podgpu.catalog.row import Kind, Metric, Scope, Stability, Worth


def _bounds(name: str, help_text: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            name=name, kind=Kind.COUNTER, help=help_text, scope=Scope.CONTAINER, labels=(("bound", bound),)
        )
        for bound in ("least", "most")
    )


CONTAINERS: tuple[Metric, ...] = (
    Metric(
        name="info",
        kind=Kind.INFO,
        help="How a container's busy time and energy were found, and the UID of its pod.",
        scope=Scope.CONTAINER,
        own_labels=("method", "pod_uid"),
    ),
    Metric(
        name="memory_used_bytes",
        kind=Kind.GAUGE,
        help="Device memory its processes hold. Absent where it cannot be measured.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="memory_limit_bytes",
        kind=Kind.GAUGE,
        help="Most device memory it may use. Absent where no sharing system sets a limit.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="sm_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the whole card's time since the previous reading in which it was busy, on MIG too. Those of all "
        "containers and of what is unattributed add up to podgpu_gpu_busy_ratio.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="instance_utilization_ratio",
        kind=Kind.GAUGE,
        help="SM activity of its MIG instance since the previous reading, as a share of the instance. Not to be added "
        "up. Absent without MIG, and where it is not alone there.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="busy_seconds_total",
        kind=Kind.COUNTER,
        help="Busy time of the GPU that is booked to it.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="power_watts",
        kind=Kind.GAUGE,
        help="Its part of the card's power now, divided as the energy that was counted last. Those of all containers "
        "and of what is unattributed add up to podgpu_gpu_power_watts.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="energy_joules_total",
        kind=Kind.COUNTER,
        help="Energy of the GPU that is booked to it: the idle part by its share, the active part by its use.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="allocated_ratio",
        kind=Kind.GAUGE,
        help="Share of the whole card it was given. Absent when it uses a card it was not given, and where the size of "
        "its MIG instance is not known.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    Metric(
        name="allocated_seconds_total",
        kind=Kind.COUNTER,
        help="Share of the whole card it was given, times time, used or not.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
    *_bounds(
        "busy_bound_seconds_total",
        "Busy time of the GPU it had at least and at most, by what the driver's looks prove. The same where it is "
        "alone. Moves once a minute.",
    ),
    *_bounds(
        "energy_bound_joules_total",
        "Energy it used at least and at most, by the bounds of its busy time. Moves once a minute.",
    ),
    Metric(
        name="resident_seconds_total",
        kind=Kind.COUNTER,
        help="Time that its contexts were on the GPU, at work or not, by the driver's log of context switches. Absent "
        "where that is not read.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="processes",
        kind=Kind.GAUGE,
        help="Number of its processes on the device. Absent where some may have been missed.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="sampling_evasion_ratio",
        kind=Kind.GAUGE,
        help="Share of the card's busy time in which it was on the card and the driver's samples, by more than chance, "
        "did not name it; 0 where they agree. Absent where the log of context switches was not compared with them.",
        scope=Scope.CONTAINER,
        stability=Stability.EXPERIMENTAL,
    ),
    Metric(
        name="last_active_timestamp_seconds",
        kind=Kind.GAUGE,
        help="When it last used the device, in seconds since 1970. Absent until it did.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="held_since_timestamp_seconds",
        kind=Kind.GAUGE,
        help="When the pod that was given the device started, in seconds since 1970. Absent where that is not known.",
        scope=Scope.CONTAINER,
    ),
    Metric(
        name="idle_since_timestamp_seconds",
        kind=Kind.GAUGE,
        help="Since when it has held the device without using it, in seconds since 1970. Present only while that is "
        "for longer than podgpu_idle_after_seconds.",
        scope=Scope.CONTAINER,
        worth=Worth.CORE,
    ),
)

UNATTRIBUTED: tuple[Metric, ...] = (
    Metric(
        name="memory_bytes",
        kind=Kind.GAUGE,
        help="Device memory in use that is booked to no container, by reason.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
        worth=Worth.CORE,
    ),
    Metric(
        name="busy_seconds_total",
        kind=Kind.COUNTER,
        help="Busy time of the GPU that is booked to no container, by reason.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
        worth=Worth.CORE,
    ),
    Metric(
        name="sm_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the card's time since the previous reading that is booked to no container, by reason. Absent if "
        "none is.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
    ),
    Metric(
        name="power_watts",
        kind=Kind.GAUGE,
        help="Part of the card's power now that is no container's, by reason. Absent if there is none.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
    ),
    Metric(
        name="energy_joules_total",
        kind=Kind.COUNTER,
        help="Energy of the GPU that is booked to no container, by reason.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
        worth=Worth.CORE,
    ),
    Metric(
        name="processes",
        kind=Kind.GAUGE,
        help="Number of processes on the GPU that belong to no container of a pod, by reason.",
        scope=Scope.UNATTRIBUTED,
        own_labels=("reason",),
    ),
)

# A family of its own, because these values already counted once as those of a container.
ENDED: tuple[Metric, ...] = (
    Metric(
        name="busy_seconds_total",
        kind=Kind.COUNTER,
        help="Busy time that was booked to containers which have ended and are no longer shown one by one.",
        scope=Scope.ENDED,
    ),
    Metric(
        name="energy_joules_total",
        kind=Kind.COUNTER,
        help="Energy that was booked to containers which have ended and are no longer shown one by one.",
        scope=Scope.ENDED,
    ),
)

BALANCES: tuple[Metric, ...] = (
    Metric(
        name="booked_memory_bytes",
        kind=Kind.GAUGE,
        help="All memory that is booked: containers, unattributed and ended add up to it exactly.",
        worth=Worth.CORE,
    ),
    Metric(
        name="busy_ratio",
        kind=Kind.GAUGE,
        help="Share of the time since the previous reading in which the GPU was busy, as it is booked; with MIG, its "
        "instances by their size.",
        worth=Worth.CORE,
    ),
    Metric(
        name="booked_busy_seconds_total",
        kind=Kind.COUNTER,
        help="All busy time that is booked: containers, unattributed and ended add up to it exactly.",
        worth=Worth.CORE,
    ),
    Metric(
        name="booked_energy_joules_total",
        kind=Kind.COUNTER,
        help="All energy that is booked: containers, unattributed and ended add up to it exactly.",
        worth=Worth.CORE,
    ),
)

SWITCHES: tuple[Metric, ...] = (
    Metric(
        name="context_switches_total",
        kind=Kind.COUNTER,
        help="How often the GPU went from one context to another, by the driver's log. Absent where that is not read.",
    ),
    Metric(
        name="switching_seconds_total",
        kind=Kind.COUNTER,
        help="Time between one context and the next, in which nobody worked, by the driver's log. Absent where that is "
        "not read.",
    ),
)

PODS: tuple[Metric, ...] = (
    Metric(
        name="pod_info",
        kind=Kind.INFO,
        help="What is known about a pod on a GPU. The pod labels that were chosen come as label_NAME.",
        scope=Scope.AGENT,
        own_labels=("namespace", "pod", "pod_uid", "workload_kind", "workload_name", "phase"),
        worth=Worth.VITAL,
    ),
)

PROCESSES: tuple[Metric, ...] = (
    Metric(
        name="memory_used_bytes",
        kind=Kind.GAUGE,
        help="Device memory a process holds. Off by default. Names are empty if it belongs to no pod.",
        scope=Scope.PROCESS,
        own_labels=("pid",),
        worth=Worth.DETAIL,
        stability=Stability.EXPERIMENTAL,
    ),
    Metric(
        name="sm_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the time since the previous reading in which the driver saw it run. Off by default.",
        scope=Scope.PROCESS,
        own_labels=("pid",),
        worth=Worth.DETAIL,
        stability=Stability.EXPERIMENTAL,
    ),
)
