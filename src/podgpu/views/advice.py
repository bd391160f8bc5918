"""What to do next about a fault, by its reason."""

from podgpu.model import Fault

_OFF_THE_BUS = "The card fell off the bus. Look for Xid 79 in the kernel log, then drain and reboot the node."
_BUG = "A bug in podgpu. Please report this with the detail."
_NEXT = {
    "attribution_error": "A bug in podgpu. The cards' own numbers stand; please report this with the detail.",
    "corrupted_inforom": "The card's own record of itself is damaged. Run nvidia-smi; the card may need service.",
    "deadline": "It does not answer in time. If this lasts, see whether the node is overloaded.",
    "driver_mismatch": "The driver was upgraded while in use. Drain the node, then reboot it.",
    "driver_not_loaded": "Load the NVIDIA driver on the node; the agent notices by itself.",
    "forbidden": "Let the agent's service account get, list and watch pods: docs/operations.md has the role.",
    "garbage": "The answer makes no sense. See that the path leads to the kubelet, and report this with its version.",
    "gone": "The driver no longer lists this card. If it was not unbound on purpose, reboot the node.",
    "gpu_not_found": _OFF_THE_BUS,
    "hidden": "Other users' processes are hidden. Run the agent as root, or mount /proc without hidepid.",
    "hung": "A driver call does not return. Look for Xid errors in the kernel log; a reboot may be the only cure.",
    "irq_issue": "If this lasts, look for Xid errors in the kernel log, then drain and reboot the node.",
    "library_not_found": "Use the nvidia runtime class for the pod, or mount libnvidia-ml.so.1 and set --nvml.library.",
    "lost": _OFF_THE_BUS,
    "no_host_pid": "The agent cannot see the node's processes. Set hostPID: true on its pod.",
    "no_permission": "Give the agent the access that it was refused here.",
    "no_socket": "Mount /var/lib/kubelet/pod-resources into the agent's pod, the directory and not the socket.",
    "not_synced": "The kubelet has just started and does not know its pods yet. Wait a minute.",
    "not_ready": "The card is busy starting or resetting. Wait a minute.",
    "permission": "Run the agent as root, or give it the right to open what it was refused here.",
    "rate_limited": "Too many programs ask the kubelet at once. The agent slows down; look for the others.",
    "released": "The GPUs were released on request. The agent takes them up again by itself.",
    "reset_required": "Drain the node, then run nvidia-smi --gpu-reset on this card.",
    "sampler_error": _BUG,
    "sampler_exited": "The driver's library ended the sampler. It is started again; if this lasts, check the driver.",
    "sampler_stuck": "The sampler does not answer. It is in the driver's hands; a reboot may be the only cure.",
    "source_error": _BUG,
    "stale": "The agent could not read for three intervals. Is the node out of memory or processor time?",
    "stalled": "The connection went silent. It is made anew; if this lasts, look at the network in between.",
    "starting": "The first reading is under way.",
    "throttled": "The API server asks for patience. The agent waits as told; nothing to do unless this lasts.",
    "timeout": "If this lasts, look for Xid errors in the kernel log, then drain and reboot the node.",
    "tls": "The server's certificate is not trusted. Check the CA that the agent was given, and the node's clock.",
    "too_large": "The answer is larger than the agent takes. Let it learn of pods from the API server instead.",
    "unauthorized": "The token is not accepted. Check the service account and that its token is mounted and fresh.",
    "unavailable": "The kubelet does not answer, as while it restarts. If this lasts, check it on the node.",
    "unimplemented": "This kubelet is too old for the call. Let the agent learn of pods from the API server.",
    "unreachable": "The API server cannot be reached. Check its address, network policies and DNS.",
}
# Where the same reason means something else.
_NEXT_OF_PART = {
    "apiserver": {
        "garbage": "The answer makes no sense. See that the address leads to an API server.",
        "gone": "The list of pods grew too old. It is read anew by itself; nothing to do unless this lasts.",
        "too_large": "An answer is larger than the agent takes. Please report this with the detail.",
    },
    "dcgm": {
        "no_exporter": "No running dcgm-exporter was found. See --dcgm.selector and --dcgm.namespace, "
        "and for one node --node-name.",
        "no_gpu": "The page shows no GPU, as while dcgm-exporter starts. If this lasts, read its log.",
        "page_garbage": "That is no page of metrics. See that the address leads to dcgm-exporter itself.",
        "page_late": "No whole page within --dcgm.timeout. See whether dcgm-exporter hangs in the driver.",
        "page_refused": "An answer other than 200; redirects are not followed. Check the path in --dcgm.url.",
        "page_too_large": "The page is larger than --dcgm.max-bytes. Raise it, or let dcgm-exporter tell less.",
        "page_unreachable": "No connection to dcgm-exporter. Check the address and network policies.",
    },
    "log-dirs": {
        "forbidden": "Run the agent as root, so that it may read the kubelet's log folders.",
        "missing": "Mount the node's /var/log/pods read-only into the agent's pod, or set --path.logs.",
        "unreadable": "The kubelet's log folders cannot be read. Check the node's disk.",
    },
    "resource-claims": {
        "forbidden": "Let the agent's service account get resourceclaims and list resourceslices: "
        "docs/operations.md has the role.",
        "garbage": "The API server offers no resource.k8s.io that podgpu knows. Kubernetes 1.32 and later have one.",
        "too_large": "An answer is larger than the agent takes. Please report this with the detail.",
    },
    "pods-api": {
        "no_socket": "Needs Kubernetes 1.37 with the kubelet's Pods API; the API server can tell the same.",
    },
}
_ELSE = "Read the agent's log; run nvidia-smi on the node to see whether the driver itself answers."


def next_step(fault: Fault, part: str = "") -> str:
    """`part` names what is at fault when that is a part of the agent and no card."""
    special = _NEXT_OF_PART.get(part, {})
    return special.get(fault.reason) or _NEXT.get(fault.reason, _ELSE)
