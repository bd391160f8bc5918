"""Every check: its id, what it means, what to do, and the function that judges. The order is that of the report."""

from collections.abc import Iterator, Sequence

from podgpu.doctor import books, card, claim, driver, kubernetes, node, process
from podgpu.doctor.verdict import Check, Finding, Machine, Status, Verdict
from podgpu.model import Snapshot

_REPORT = "A bug in podgpu. Please report it with `podgpu snapshot -o json`."
_BY_REASON = "By its reason: see docs/operations.md."

CHECKS: tuple[Check, ...] = (
    Check("nvml.library", "The driver's library can be opened.", _BY_REASON, driver.library),
    Check(
        "nvml.gpus",
        "The driver lists GPUs, and each of them answers.",
        "Give the pod the nvidia runtime class with NVIDIA_VISIBLE_DEVICES=all, and run nvidia-smi on the node.",
        driver.gpus,
    ),
    Check(
        "nvml.processes",
        "The driver lists the processes on each GPU.",
        "Update the driver: 535.43 to 535.86 list processes wrongly. Without hostPID: true it lists none.",
        driver.processes,
    ),
    Check(
        "nvml.profiling",
        "Hopper and newer cards give profiling values (GPM).",
        "Update the driver. If another program profiles the card, stop it.",
        driver.profiling,
    ),
    Check(
        "nvml.values",
        "No value had to be left out because it made no sense or could not be had.",
        "docs/operations.md tells what each reason means; most go with a newer driver.",
        driver.values,
    ),
    Check(
        "gpu.recovery",
        "The driver asks for no reset, reboot or the like.",
        "Drain the node, then do what the driver asks for.",
        card.recovery,
    ),
    Check(
        "gpu.memory",
        "No bad memory waits to be replaced by spare memory, and none failed to be.",
        "Drain the node at the next chance, then run nvidia-smi --gpu-reset or reboot.",
        card.memory,
    ),
    Check(
        "gpu.xid",
        "The driver raised no XID error while podgpu listened.",
        "Look the code up in NVIDIA's list of XID errors, and for it in the kernel log.",
        card.xid,
    ),
    Check(
        "gpu.link",
        "Each PCIe link is as wide as card and slot allow.",
        "Reseat the card, or check the riser and the slot.",
        card.link,
    ),
    Check(
        "mig.instances",
        "A GPU in MIG mode has instances, and podgpu sees them.",
        "Create some. If there are: set NVIDIA_MIG_MONITOR_DEVICES=all on the agent's container.",
        card.instances,
    ),
    Check(
        "mig.profiling",
        "MIG instances give profiling values; their use is known by nothing else.",
        "GPM on instances takes Hopper or newer. There, update the driver.",
        card.instance_profiling,
    ),
    Check(
        "proc.host-pid",
        "podgpu is in the node's PID namespace, so that PIDs mean the same to it and to the driver.",
        "Set hostPID: true on the agent's pod.",
        process.host_pid,
    ),
    Check(
        "proc.hidepid",
        "/proc shows the processes of other users.",
        "Run the agent as root, or mount /proc without hidepid.",
        process.hidden,
    ),
    Check(
        "proc.owners",
        "Whose each process on a GPU is can be read from its cgroup.",
        "docs/operations.md tells what each reason means. Report a cgroup that podgpu does not know.",
        process.owners,
    ),
    Check("kubelet.socket", "The kubelet's pod-resources socket answers.", _BY_REASON, kubernetes.socket),
    Check(
        "kubelet.allocations",
        "The kubelet tells which container was given which device.",
        "See claims.missing and sharing.unknown-ids.",
        kubernetes.allocations,
    ),
    Check(
        "kubelet.pods-api",
        "The kubelet's Pods API answers, where there is one.",
        _BY_REASON,
        kubernetes.pods_api,
    ),
    Check("api.access", "The API server lets podgpu list and watch pods.", _BY_REASON, kubernetes.api_access),
    Check(
        "pods.source",
        "Somebody tells the pods of this node.",
        "Give the agent's service account the role in docs/operations.md, or mount /var/log/pods.",
        kubernetes.source,
    ),
    Check(
        "pods.log-dirs",
        "The kubelet's log folders can be read. They name the pods where nobody else does.",
        _BY_REASON,
        kubernetes.log_dirs,
    ),
    Check(
        "pods.annotations",
        "Somebody tells the pods' annotations. Many schedulers write into them who has which card.",
        "Give the agent's service account the role in docs/operations.md, and mount its token.",
        kubernetes.annotations,
    ),
    Check(
        "pods.names",
        "Every pod on a GPU is in the list of pods.",
        "Set NODE_NAME from spec.nodeName: --node-name must be the name that Kubernetes knows.",
        kubernetes.names,
    ),
    Check(
        "claims.rights",
        "The API server lets podgpu read resource claims, where pods have some.",
        "Let the agent's service account get resourceclaims, and list resourceslices.",
        claim.rights,
    ),
    Check(
        "claims.missing",
        "Nobody uses a GPU without having been given it.",
        "Look for a privileged container or NVIDIA_VISIBLE_DEVICES=all. `podgpu why POD` tells what is known.",
        claim.missing,
    ),
    Check(
        "sharing.*",
        "A way to share GPUs that this node shows signs of, and how many claims it gave.",
        "See that podgpu gets what the system needs: mostly the kubelet's list and the pods' annotations.",
        claim.systems,
    ),
    Check(
        "sharing.unknown-ids",
        "Every device id that the kubelet gave out is understood.",
        "podgpu knows no system with such ids. Report the resource and the id.",
        claim.unknown_ids,
    ),
    Check("books.balance", "Containers and the rest add up to the GPU.", _REPORT, books.balance),
    Check(
        "books.unattributed",
        "At most a tenth of the memory, the busy time and the energy is booked to nobody known.",
        "See the proc and pods checks. `podgpu snapshot` shows the processes.",
        books.unattributed,
    ),
    Check(
        "node.clock",
        "The clock is set by NTP or the like; an agent's agrees with this machine's.",
        "Start chrony or systemd-timesyncd on the node. A wrong clock breaks TLS and shifts every sample.",
        node.clock,
    ),
    Check(
        "dialect.dcgm-fields",
        "Every counter of --dcgm.collectors can be had without DCGM.",
        "Take the field off the list, or read dcgm-exporter's own page: docs/compatibility.md.",
        node.dcgm_fields,
    ),
    Check("part.*", "Any other part of podgpu that does not work.", _BY_REASON, node.parts),
)


def examine(snapshot: Snapshot, machine: Machine, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    return tuple(finding for check in checks for finding in _findings(check, snapshot, machine))


def _findings(check: Check, snapshot: Snapshot, machine: Machine) -> Iterator[Finding]:
    judged = check.judge(snapshot, machine)
    verdicts = {"": judged} if isinstance(judged, Verdict) else judged
    for name, verdict in verdicts.items():
        remedy = check.remedy if verdict.status in (Status.WARN, Status.FAIL) else ""
        yield Finding(
            id=check.id.replace("*", name),
            status=verdict.status,
            detail=verdict.detail,
            advice=verdict.advice or remedy,
        )
