"""The sentences of `podgpu why`: what each method measures and what it estimates, and what else was found."""

from podgpu.insight import without_claim
from podgpu.insight.tenants import EVIDENCE
from podgpu.model import Holding, Tenant

METHODS = {
    "measured": (
        "Busy time and active energy are divided by samples. Five times a second the driver samples the GPU: it names "
        "the process that ran last and gives the whole GPU's busy time, so a tenant may be named for time that was "
        "another's. Its likely range follows from how often it was named and how busy the GPU was. It holds if no "
        "tenant keeps time with the samples, which come every 200 ms: work at 5, 10, 25 or 30 frames a second does. "
        "Kernels that draw unequal power in equal time cannot be distinguished."
    ),
    "checked": (
        "Busy time and active energy are divided by the driver's samples, corrected by readings of its log of context "
        "switches at random moments. These are right whatever rhythm tenants have. The likely range follows from how "
        "much the readings differ from one another; it is wide for tenants that come and go over seconds. Kernels that "
        "draw unequal power in equal time cannot be distinguished."
    ),
    "resident": (
        "The driver's log of context switches shows which context was on the GPU, to the microsecond. A context stays "
        "after its work is done, so where the GPU had pauses, its busy time is known between a least and a most; where "
        "it had none, exactly. A tenant whose context was not on the GPU did nothing."
    ),
    "exclusive": (
        "It is alone on the GPU, so the GPU's busy time and active energy are its own. The card measures both; "
        "nothing is estimated."
    ),
    "instance": (
        "It is alone on its MIG instance, whose activity is measured. A card has one energy counter, so the "
        "instance's part of it is estimated from its activity and its size."
    ),
    "weighted": (
        "It shares a MIG instance, or an MPS server, within which use cannot be measured. The total of its tenants "
        "is measured, then divided by their claims, or equally if no claim is known: an estimate."
    ),
    "reserved": (
        "Use could not be measured by process. Busy time and active energy are divided by claims: an estimate."
    ),
    "equal": (
        "Use could not be measured by process, and no claim is known. Busy time and active energy are divided "
        "equally: an estimate."
    ),
    "": "No use is booked to it now. It is charged for the idle energy of the share that it holds.",
}
CERTAINTIES = {
    "exact": "Measured, or the only possibility: it is alone on the GPU or its instance, or has no process there.",
    "bounded": "The truth is proven to lie between the two numbers.",
    "estimated": (
        "The two numbers are a likely range, no bounds: they should hold in 95 of 100 minutes, if what is said above "
        "does."
    ),
}
PROVEN = "What needs no assumption: the least that it had for certain, and the most that it can have had."
STORED = (
    "This is read from a store. It keeps numbers, and no processes, claims or other evidence. To see those, ask the "
    "pod's node with `podgpu why {name} --url {url}`, or name the agents too: with --kube.context, or "
    "with --cluster.agents."
)
STORED_NOTHING = "The store has no series of it on a GPU."
STORED_IDLE = "its series count 0 processes on the card"
BLIND = "No process can be seen, so the holder of the claim is assumed to be the user."
UNSURE = "Not every process on this GPU could be listed, or traced to its container."
UNSIZED = "nothing: the size of its share is not known, so no idle energy can be booked to it"
UNSIZED_INSTANCE = "nothing: the size of its MIG instance is not known, so no part of the GPU can be booked to it"
UNBOOKED = "nothing: no agent has reported what it uses of this GPU"
SILENT = "The GPU does not answer, so its use now is unknown. The counters are the last that were read."
SETTLED = (
    "What the sharing system wrote can be read in two ways. Its processes settle it: they were seen on this GPU, while "
    "the other reading names"
)
SWITCHING = "of the GPU's time goes into switching between tenants. With MPS or MIG they would run side by side."
MISSAMPLED = (
    "The driver's samples do not represent it, and other tools that read them show a wrong share. Work that keeps time "
    "with the samples does that; nothing is wrong with it."
)
UNEXPLAINED = (
    "of it no process explains: one may have died without freeing its memory, be hidden from the driver, or use "
    "managed memory. It is booked to no container."
)
ELSEWHERE = "of its processes' memory is charged to another cgroup, where a limit of the container does not apply."
SERVER = "It is the MPS server. Its time is booked to its clients, its memory as overhead."
# Why a container uses a card without a claim of its own.
WITHOUT_CLAIM = {
    without_claim.POD: "It has no claim of its own: this GPU is allocated to its pod, in another container.",
    without_claim.SERVER: SERVER,
    without_claim.MONITORS: "It monitors this GPU: its resource claim gives it admin access. It holds nothing here.",
    without_claim.INIT: "It is an init container: the kubelet does not list what such a container was given.",
    without_claim.NOT_UNDERSTOOD: (
        "No claim is known: something that was allocated to its pod is not understood. It may be this GPU."
    ),
    without_claim.NOT_LISTED: (
        "No claim is known: since it started, the kubelet has not listed what was allocated to pods."
    ),
    without_claim.NOT_GIVEN: (
        "It uses this without an allocation to its pod. Look for a privileged container or for "
        "NVIDIA_VISIBLE_DEVICES=all."
    ),
}
NO_CONTAINER = "It is not known which of the pod's containers this is, so it is booked as unknown."
NAMELESS = "It is not known which of the pod's containers this is, so it is booked to the pod."
ENDED = (
    "It is no longer there, or the GPU does not answer. Its counters stay for a while, so that their last increase "
    "is scraped."
)
OUTSIDE = "It is outside Kubernetes. What it uses is booked to no pod, but to"
NAMESAKE = "An owner outside Kubernetes has the same name; this is the pod."
# How it is known who is outside Kubernetes, by the first word of the title; `session` is for `podman/USER/ID`.
OUTSIDERS = {
    "docker": "the container's id in the cgroup of each process; its name, where it can be read, from Docker's files",
    "podman": "the container's id in the cgroup of each process; its name, where it can be read, from Podman's files",
    "container": "the container's id in the cgroup of each process",
    "session": "the user whose session each process is in, and the container's id below it",
    "slurm": "the job's number in the cgroup of each process, which Slurm made",
    "user": "the user that each process runs as",
}
ON_NO_CARD = "neither an annotation nor a process says on which card, so it counts as no claim"
NOT_UNDERSTOOD = "no sharing system knows this id, so it counts as no claim"
DISPUTED = "the kubelet lists it for another pod too, so it counts as no claim"
NOTHING = "It holds no GPU and has no process on one."


def how_held(held: Holding, *, is_stored: bool) -> str:
    """How it is known whether a tenant uses what it holds."""
    is_counted = is_stored and held.evidence == "no_process"
    return STORED_IDLE if is_counted else EVIDENCE.get(held.evidence, held.evidence)


def method_text(tenant: Tenant, *, has_processes: bool, is_stored: bool) -> str:
    """How its busy time was found. What has no process uses nothing, whatever was found before."""
    uses = has_processes or tenant.idle is None or (is_stored and not tenant.idle)
    return METHODS.get(tenant.booking.method if uses else "", "")
