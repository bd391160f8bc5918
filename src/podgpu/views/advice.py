"""What to do next about a fault, by its reason."""

from podgpu.model import Fault

_OFF_THE_BUS = "The card fell off the bus. Look for Xid 79 in the kernel log, then drain and reboot the node."
_NEXT = {
    "driver_mismatch": "The driver was upgraded while in use. Drain the node, then reboot it.",
    "driver_not_loaded": "Load the NVIDIA driver on the node; the agent notices by itself.",
    "gpu_not_found": _OFF_THE_BUS,
    "library_not_found": "Run the pod with the nvidia runtime class, or mount libnvidia-ml.so.1.",
    "gone": "The driver no longer lists this card. If it was not unbound on purpose, reboot the node.",
    "hung": "A driver call does not return. Look for Xid errors in the kernel log; a reboot may be the only cure.",
    "lost": _OFF_THE_BUS,
    "no_permission": "Give the agent the access that it was refused here.",
    "not_ready": "The card is busy starting or resetting. Wait a minute.",
    "released": "The GPUs were released on request. The agent takes them up again by itself.",
    "reset_required": "Drain the node, then run nvidia-smi --gpu-reset on this card.",
    "sampler_exited": "The driver's library ended the sampler. It is started again; if this lasts, check the driver.",
    "sampler_stuck": "The sampler does not answer. It is in the driver's hands; a reboot may be the only cure.",
    "starting": "The first reading is under way.",
    "stale": "The agent could not read for three intervals. Is the node out of memory or processor time?",
    "timeout": "If this lasts, look for Xid errors in the kernel log, then drain and reboot the node.",
}
_ELSE = "Read the agent's log; run nvidia-smi on the node to see whether the driver itself answers."


def next_step(fault: Fault) -> str:
    return _NEXT.get(fault.reason, _ELSE)
