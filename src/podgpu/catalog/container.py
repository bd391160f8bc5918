"""The books: what each container uses of a GPU, what belongs to no container, and the sum of both."""

from podgpu.catalog.row import CORE, EXPERIMENTAL, Metric, counter, gauge, info


def _ends(name: str, label: str, help_text: str) -> tuple[Metric, ...]:
    """Both ends of a range. Only one that is proven is called a bound."""
    return tuple(counter(f"podgpu_{name}", help_text, labels={label: end}) for end in ("least", "most"))


CONTAINERS: tuple[Metric, ...] = (
    info(
        "podgpu_container_info",
        "How a container's busy time and energy were found, how sure its busy time is (exact, bounded or estimated), "
        "and the UID of its pod.",
        own_labels=("method", "certainty", "pod_uid"),
    ),
    gauge(
        "podgpu_container_memory_used_bytes",
        "Device memory its processes hold. Absent where it cannot be measured.",
        worth=CORE,
    ),
    gauge(
        "podgpu_container_memory_limit_bytes",
        "Most device memory it may use. Absent where no sharing system sets a limit.",
    ),
    gauge(
        "podgpu_container_sm_utilization_ratio",
        "Share of the whole card's time since the previous reading in which it was busy, on MIG too. Those of "
        "all containers and of what is unattributed add up to podgpu_gpu_busy_ratio.",
        worth=CORE,
    ),
    gauge(
        "podgpu_container_instance_utilization_ratio",
        "SM activity of its MIG instance since the previous reading, as a share of the instance. Not to be added "
        "up. Absent without MIG, and where it is not alone there.",
    ),
    counter("podgpu_container_busy_seconds_total", "Busy time of the GPU that is booked to it.", worth=CORE),
    gauge(
        "podgpu_container_power_watts",
        "Its part of the card's power now, divided as the energy that was counted last. Those of all containers "
        "and of what is unattributed add up to podgpu_gpu_power_watts.",
        worth=CORE,
    ),
    counter(
        "podgpu_container_energy_joules_total",
        "Energy of the GPU that is booked to it: the idle part by its share, the active part by its use.",
        worth=CORE,
    ),
    gauge(
        "podgpu_container_allocated_ratio",
        "Share of the whole card that is allocated to it. Absent when it uses a card without an allocation, and "
        "where the size of its MIG instance is not known.",
        worth=CORE,
    ),
    counter(
        "podgpu_container_allocated_seconds_total",
        "Share of the whole card that is allocated to it, times time, used or not.",
        worth=CORE,
    ),
    counter(
        "podgpu_container_unknown_share_seconds_total",
        "Time for which it held a share of unknown size, which podgpu_container_allocated_seconds_total lacks. Counted "
        "when it has been so for a minute. Absent if there is none.",
        worth=CORE,
    ),
    counter(
        "podgpu_container_unknown_use_seconds_total",
        "The part of podgpu_container_allocated_seconds_total in which nobody knows whether it used what it held. "
        "That is no waste.",
        stability=EXPERIMENTAL,
        worth=CORE,
    ),
    counter(
        "podgpu_container_busy_settled_seconds_total",
        "Busy time of the GPU that is booked to it in the minutes that are over: never outside its bounds and its "
        "likely range, which are of the same minutes. Updated once a minute.",
        stability=EXPERIMENTAL,
    ),
    *_ends(
        "container_busy_bound_seconds_total",
        "bound",
        "Busy time of the GPU that it had for certain, and the most that it can have had. Both are the same where it "
        "is alone; where samples divide a card, they may be 0 and all of the card's. Updated once a minute.",
    ),
    *_ends(
        "container_busy_likely_seconds_total",
        "end",
        "Busy time of the GPU that it likely had, from and to: by the driver's samples, by checks of its log, or as "
        "proven. Updated once a minute.",
    ),
    *_ends(
        "container_energy_bound_joules_total",
        "bound",
        "Energy that it used for certain, and the most that it can have used: on a shared card, whatever its "
        "neighbours' kernels draw. Updated once a minute.",
    ),
    *_ends(
        "container_energy_likely_joules_total",
        "end",
        "Energy that it likely used, from and to, if a busy second draws as much whichever container causes it. "
        "Updated once a minute.",
    ),
    counter(
        "podgpu_container_resident_seconds_total",
        "Time that its contexts were on the GPU, at work or not, by the driver's log of context switches. Absent "
        "where that is not read.",
    ),
    gauge(
        "podgpu_container_processes",
        "Number of its processes on the device. Absent where some may have been missed.",
    ),
    gauge(
        "podgpu_container_sampling_error_ratio",
        "Share of the card's busy time for which the driver's samples name it too often or, below 0, too seldom, by "
        "more than chance; 0 where they represent it. Absent where the log of context switches was not compared with "
        "them.",
        stability=EXPERIMENTAL,
    ),
    gauge(
        "podgpu_container_last_active_timestamp_seconds",
        "When it last used the device, in seconds since 1970. Absent until it did.",
    ),
    gauge(
        "podgpu_container_held_since_timestamp_seconds",
        "When the pod that holds the device started, in seconds since 1970. Absent where that is not known.",
    ),
    gauge(
        "podgpu_container_idle_since_timestamp_seconds",
        "Since when it has held the device without using it, in seconds since 1970. Present only while that is "
        "for longer than podgpu_idle_after_seconds.",
        worth=CORE,
    ),
    gauge(
        "podgpu_container_state",
        "1 for what it does with what it holds: working, idle (for longer than podgpu_idle_after_seconds), waiting "
        "(given not long ago and not used yet) or unknown. Absent if it holds nothing.",
        own_labels=("state",),
        worth=CORE,
        stability=EXPERIMENTAL,
    ),
    gauge(
        "podgpu_container_shared",
        "1 if another container is on the same card, on MIG too. Absent otherwise.",
        stability=EXPERIMENTAL,
    ),
    gauge(
        "podgpu_container_not_given",
        "1 if it uses a card that is not allocated to its pod. Absent otherwise, and where that is not certain.",
        stability=EXPERIMENTAL,
    ),
)

UNATTRIBUTED: tuple[Metric, ...] = (
    gauge(
        "podgpu_unattributed_memory_bytes",
        "Device memory in use that is booked to no container, by reason.",
        own_labels=("reason",),
        worth=CORE,
    ),
    counter(
        "podgpu_unattributed_busy_seconds_total",
        "Busy time of the GPU that is booked to no container, by reason.",
        own_labels=("reason",),
        worth=CORE,
    ),
    *_ends(
        "unattributed_busy_bound_seconds_total",
        "bound",
        "Busy time of the GPU that was no container's for certain, and the most that can have been. Updated once a "
        "minute.",
    ),
    gauge(
        "podgpu_unattributed_sm_utilization_ratio",
        "Share of the card's time since the previous reading that is booked to no container, by reason. Absent "
        "if none is.",
        own_labels=("reason",),
    ),
    gauge(
        "podgpu_unattributed_power_watts",
        "Part of the card's power now that is no container's, by reason. Absent if there is none.",
        own_labels=("reason",),
    ),
    counter(
        "podgpu_unattributed_energy_joules_total",
        "Energy of the GPU that is booked to no container, by reason.",
        own_labels=("reason",),
        worth=CORE,
    ),
    gauge(
        "podgpu_unattributed_processes",
        "Number of processes on the GPU that belong to no container of a pod, by reason.",
        own_labels=("reason",),
    ),
)

# A family of its own, because these values already counted once as those of a container.
ENDED: tuple[Metric, ...] = (
    counter(
        "podgpu_ended_busy_seconds_total",
        "Busy time that was booked to containers which have ended and are no longer shown one by one.",
    ),
    counter(
        "podgpu_ended_energy_joules_total",
        "Energy that was booked to containers which have ended and are no longer shown one by one.",
    ),
)

BALANCES: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_booked_memory_bytes",
        "All memory that is booked: containers, unattributed and ended add up to it exactly.",
        worth=CORE,
    ),
    gauge(
        "podgpu_gpu_busy_ratio",
        "Share of the time since the previous reading in which the GPU was busy, as it is booked; with MIG, its "
        "instances by their size.",
        worth=CORE,
    ),
    counter(
        "podgpu_gpu_booked_busy_seconds_total",
        "All busy time that is booked: containers, unattributed and ended add up to it exactly.",
        worth=CORE,
    ),
    counter(
        "podgpu_gpu_booked_energy_joules_total",
        "All energy that is booked: containers, unattributed and ended add up to it exactly.",
        worth=CORE,
    ),
)

SWITCHES: tuple[Metric, ...] = (
    counter(
        "podgpu_gpu_context_switches_total",
        "How often the GPU went from one context to another, by the driver's log. Absent where that is not read.",
    ),
    counter(
        "podgpu_gpu_switching_seconds_total",
        "Time between one context and the next, in which no process ran, by the driver's log. Absent where that "
        "is not read.",
    ),
)

PODS: tuple[Metric, ...] = (
    info(
        "podgpu_pod_info",
        "What is known about a pod on a GPU. The pod labels that were chosen come as label_NAME.",
        own_labels=("namespace", "pod", "pod_uid", "workload_kind", "workload_name", "phase"),
    ),
)

UNPLACED: tuple[Metric, ...] = (
    counter(
        "podgpu_unplaced_seconds_total",
        "Time for which a container held cards, or parts of cards, of which nothing says which ones they are, times "
        "their number. podgpu_container_allocated_seconds_total lacks it. Counted when it has been so for a minute.",
        own_labels=("namespace", "pod", "container"),
    ),
)

PROCESSES: tuple[Metric, ...] = (
    gauge(
        "podgpu_process_memory_used_bytes",
        "Device memory a process holds. Off by default. Names are empty if it belongs to no pod.",
        own_labels=("pid",),
    ),
    gauge(
        "podgpu_process_sm_utilization_ratio",
        "Share of the time since the previous reading in which the driver saw it run. Off by default.",
        own_labels=("pid",),
    ),
)
