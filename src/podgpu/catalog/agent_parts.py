"""The parts that give the agent its facts, one row each. Besides this, only the part itself may spell its name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_TOO_LARGE = "An answer is larger than the agent takes. Please report this with the detail."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPart:
    """A part of the agent; docs/operations.md says what each of them reads.

    `next_steps` says what to do for each reason of a fault that means something special in this part. `errors` are the
    reasons that are counted from 0 on while the part runs: Prometheus sees no increase in a counter that begins with
    its first error. Others, such as rare codes of the driver, begin when they happen.
    """

    name: str
    reads_gpus: bool = False  # without it, the node has no GPU to show
    next_steps: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_KUBELET = _names(
    "deadline garbage no_socket not_synced permission rate_limited too_large too_many unavailable unimplemented"
)
_API_SERVER = _names("forbidden garbage gone stalled throttled tls too_large unauthorized unreachable")

NVML = AgentPart(
    name="nvml",
    reads_gpus=True,
    errors=_names(
        "corrupted_inforom driver_mismatch driver_not_loaded gone gpm_metrics gpm_sample gpu_not_found hung "
        "implausible_value irq_issue library_not_found listing_hung lost no_data no_permission not_ready "
        "not_text process_list_layout refused reset_required sampler_error sampler_exited sampler_stuck "
        "source_error timeout too_many_processes unknown_error"
    ),
)
DCGM = AgentPart(
    name="dcgm",
    reads_gpus=True,
    next_steps={
        "no_exporter": "No running dcgm-exporter was found. See --dcgm.selector and --dcgm.namespace, "
        "and for one node --node-name.",
        "no_gpu": "The page shows no GPU, as while dcgm-exporter starts. If this lasts, read its log.",
        "not_believed": "Pods have the labels, but no DaemonSet in --dcgm.namespace runs them. If they are yours, name "
        "their namespace; else find out whose they are.",
        "page_garbage": "That is not a page of metrics. Check that the address leads to dcgm-exporter itself.",
        "page_late": "No whole page within --dcgm.timeout. See whether dcgm-exporter hangs in the driver.",
        "page_refused": "An answer other than 200; redirects are not followed. Check the path in --dcgm.url.",
        "page_too_large": "The page is larger than --dcgm.max-bytes. Raise it, or let dcgm-exporter export less.",
        "page_unreachable": "No connection to dcgm-exporter. Check the address and network policies.",
    },
    errors=_names(
        "contradiction gone implausible_value malformed_sample no_exporter no_gpu not_believed page_garbage page_late "
        "page_refused page_too_large page_unreachable too_many_cards too_many_sample"
    ),
)
SIMULATOR = AgentPart(name="simulator", reads_gpus=True)
PODRESOURCES = AgentPart(
    name="podresources",
    errors=("bad_id", *_KUBELET),
)
PODS_API = AgentPart(
    name="pods-api",
    next_steps={
        "no_socket": "Needs Kubernetes 1.37 with the kubelet's Pods API; the API server can report the same.",
    },
    errors=("bad_pod", *_KUBELET, "unknown_event"),
)
APISERVER = AgentPart(
    name="apiserver",
    next_steps={
        "garbage": "The answer makes no sense. Check that the address leads to an API server.",
        "gone": "The list of pods grew too old. It is read again by itself; nothing to do unless this lasts.",
        "too_large": _TOO_LARGE,
    },
    errors=(*_API_SERVER, "too_many"),
)
LOG_DIRS = AgentPart(
    name="log-dirs",
    next_steps={
        "forbidden": "Run the agent as root, so that it may read the kubelet's log folders.",
        "missing": "Mount the node's /var/log/pods read-only into the agent's pod, or set --path.logs.",
        "unreadable": "The kubelet's log folders cannot be read. Check the node's disk.",
    },
    errors=("forbidden", "missing", "unreadable"),
)
RESOURCE_CLAIMS = AgentPart(
    name="resource-claims",
    next_steps={
        "forbidden": "Let the agent's service account get resourceclaims and list resourceslices: "
        "docs/operations.md has the role.",
        "garbage": "The API server offers no version of resource.k8s.io that podgpu knows. "
        "Kubernetes 1.32 and later have one.",
        "too_large": _TOO_LARGE,
    },
    errors=_API_SERVER,
)
PROCFS = AgentPart(
    name="procfs",
    errors=("no_host_pid",),
)
WORKLOADS = AgentPart(name="workloads")
SHARING = AgentPart(
    name="sharing",
    errors=("unknown_id",),
)
ATTRIBUTION = AgentPart(
    name="attribution",
    next_steps={"starting": "Which pod uses which GPU follows, once the kubelet and the other parts have answered."},
    errors=("attribution_error",),
)
SWITCHES = AgentPart(
    name="switches",
    next_steps={
        "bad_layout": "The log has an unexpected format. Set --switches=off, and report this with the version.",
        "hidden_processes": "Give the agent CAP_SYS_ADMIN to see other users' processes in the log; they are booked as "
        "unknown.",
        "in_use": "Another podgpu on this node reads the log of this card. Let only one of them do so.",
        "no_device": "Give the agent /dev/nvidiactl and the card's /dev/nvidiaN, as the NVIDIA runtime does.",
        "pid_namespace": "Set hostPID: true on the agent's pod: the log names processes as the node does.",
        "reader_exited": "The reader of the log ended. It is restarted after a while; samples are used meanwhile.",
        "reader_stuck": "The reader of the log does not answer. Samples are used; a reboot may be the only cure.",
        "refused": "The driver does not provide the log here. Samples are used. docs/switches.md lists the limits.",
        "unknown_branch": "The log of this driver branch is unknown to podgpu and is not opened. Samples are used.",
    },
    errors=_names(
        "bad_stamp clock_step late_record lost_records mig_record other_record overflow reader_exited "
        "reader_stuck unpaired"
    ),
)
OTLP = AgentPart(
    name="otlp",
    next_steps={
        "deadline": "The collector does not answer within OTEL_EXPORTER_OTLP_TIMEOUT. Check its load and the network.",
        "garbage": "The answer makes no sense. Check that OTEL_EXPORTER_OTLP_ENDPOINT leads to an OTLP/HTTP receiver.",
        "refused": "The collector refused the request. Check the path of OTEL_EXPORTER_OTLP_ENDPOINT and its log.",
        "rejected": "The collector did not take every series. The detail and its log say why.",
        "starting": "The first push is under way.",
        "throttled": "The collector asked the agent to wait, and it does. Nothing to do unless this lasts.",
        "tls": "The collector's certificate is not trusted. Check OTEL_EXPORTER_OTLP_CERTIFICATE and the node's clock.",
        "too_large": "The request is larger than the collector takes. Raise its limit or lower --series.limit.",
        "unauthorized": "The collector does not accept the credentials. Check OTEL_EXPORTER_OTLP_HEADERS.",
        "unreachable": "The collector cannot be reached. Check OTEL_EXPORTER_OTLP_ENDPOINT and network policies.",
    },
    errors=_names("deadline garbage refused rejected throttled tls too_large unauthorized unreachable"),
)

PARTS = {part.name: part for part in tuple(vars().values()) if isinstance(part, AgentPart)}
