"""What to do next about a fault, by its reason."""

from podgpu.catalog.agent_parts import PARTS
from podgpu.model import Fault

_OFF_THE_BUS = "The card fell off the bus. Look for Xid 79 in the kernel log, then drain and reboot the node."
_BUG = "A bug in podgpu. Please report this with the detail."
NEXT = {
    "attribution_error": "A bug in podgpu. The cards' own numbers are right; please report this with the detail.",
    "corrupted_inforom": "The card's InfoROM is damaged. Run nvidia-smi; the card may need service.",
    "crashed": "A bug in podgpu ended this part. It is restarted; please report this with the log.",
    "deadline": "It does not answer in time. If this lasts, check whether the node is overloaded.",
    "driver_mismatch": "The driver was upgraded while in use. Drain the node, then reboot it.",
    "driver_not_loaded": "Load the NVIDIA driver on the node; the agent notices by itself.",
    "forbidden": "Let the agent's service account list and watch pods: docs/operations.md has the role.",
    "garbage": "The response is invalid. Check that the path leads to the kubelet, and report this with its version.",
    "gone": "The driver or dcgm-exporter no longer lists this card. If it was not unbound on purpose, reboot the node.",
    "gpu_not_found": _OFF_THE_BUS,
    "hidden": "Other users' processes are hidden. Run the agent as root, or mount /proc without hidepid.",
    "hung": "A driver call does not return. Look for Xid errors in the kernel log; a reboot may be the only cure.",
    "irq_issue": "If this lasts, look for Xid errors in the kernel log, then drain and reboot the node.",
    "library_not_found": "Use the nvidia runtime class for the pod, or mount libnvidia-ml.so.1 and set --nvml.library.",
    "lost": _OFF_THE_BUS,
    "no_agent": "Install the podgpu agent. If it is installed, name its --cluster.namespace and --cluster.daemonset.",
    "no_host_pid": "The agent cannot see the node's processes. Set hostPID: true on its pod.",
    "no_permission": "Give the agent the access that it was denied here.",
    "no_socket": "Mount /var/lib/kubelet/pod-resources into the agent's pod, the directory and not the socket.",
    "not_believed": "Pods have the labels of an agent or a dcgm-exporter, but no DaemonSet in the right namespace runs "
    "them. If they are yours, name it: --cluster.namespace, --dcgm.namespace. Else find out whose they are.",
    "not_synced": "The kubelet has just started and does not know its pods yet. Wait a minute.",
    "not_ready": "The card is busy starting or resetting. Wait a minute.",
    "permission": "Run the agent as root, or let it open what it was denied here.",
    "rate_limited": "The kubelet gets too many requests. The agent slows down; find out which programs send them.",
    "released": "The GPUs were released on request. The agent opens them again by itself.",
    "reset_required": "Drain the node, then run nvidia-smi --gpu-reset on this card.",
    "sampler_error": _BUG,
    "sampler_exited": "The driver's library ended the sampler. It is restarted; if this lasts, check the driver.",
    "sampler_stuck": "The sampler does not answer: it is stuck in the driver. A reboot may be the only cure.",
    "source_error": _BUG,
    "stale": "The agent could not read for three intervals. Is the node out of memory or CPU time?",
    "stalled": "The connection went silent. The agent opens a new one; if this lasts, check the network in between.",
    "starting": "The first reading is under way.",
    "throttled": "The API server told the agent to wait, and it does. Nothing to do unless this lasts.",
    "timeout": "If this lasts, look for Xid errors in the kernel log, then drain and reboot the node.",
    "tls": "The server's certificate is not trusted. Check the CA that the agent was given, and the node's clock.",
    "too_large": "The response is larger than the agent accepts. Let it read pods from the API server instead.",
    "too_many": "More pods or device ids than any node has; the others are left out. Find out what creates them.",
    "too_many_containers": "A pod has too many containers; the others are left out. Find out what created it.",
    "unauthorized": "The token is not accepted. Check the service account and that its token is mounted and fresh.",
    "unavailable": "The kubelet does not answer; it may be restarting. If this lasts, check it on the node.",
    "unimplemented": "This kubelet is too old for the call. Let the agent read pods from the API server.",
    "unreachable": "The API server cannot be reached. Check its address, network policies and DNS.",
}
ELSE = "Read the agent's log; run nvidia-smi on the node to see whether the driver itself answers."

# What the driver may ask for. Zero is nothing.
ACTIONS = {
    1: "reset the GPU",
    2: "reboot the node",
    3: "drain peer-to-peer traffic",
    4: "drain and reset",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot all nodes",
}


def next_step(fault: Fault, part: str = "") -> str:
    """`part` names the part of the agent that is at fault; empty for a card."""
    special = PARTS[part].next_steps if part in PARTS else {}
    return special.get(fault.reason) or NEXT.get(fault.reason, ELSE)
