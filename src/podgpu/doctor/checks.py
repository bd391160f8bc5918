"""Every check: its id, what it means, what to do, and the function that judges. The report has the same order."""

from collections.abc import Sequence

from podgpu.doctor import accounting, claims, driver, environment, hardware, kubernetes, processes
from podgpu.doctor.check import Check, CheckResult, Finding, Machine, Status, finding
from podgpu.model import Snapshot
from podgpu.views.text import line

_REPORT = "A bug in podgpu. Please report it with `podgpu snapshot -o json`."
_BY_REASON = "It depends on the reason: see docs/operations.md."

CHECKS: tuple[Check, ...] = (
    Check("nvml.library", "The driver's library can be opened.", _BY_REASON, driver.library),
    Check(
        "nvml.gpus",
        "The driver lists GPUs, and each one answers.",
        "Give the pod the nvidia runtime class with NVIDIA_VISIBLE_DEVICES=all, and run nvidia-smi on the node.",
        driver.gpus,
    ),
    Check(
        "nvml.processes",
        "The driver lists the processes on each GPU.",
        "Update the driver: 535.43 to 535.86 list processes incorrectly. Without hostPID: true it lists none.",
        driver.processes,
    ),
    Check(
        "nvml.profiling",
        "Hopper and newer cards provide profiling values (GPM).",
        "Update the driver. If another program is profiling the card, stop it.",
        driver.profiling,
    ),
    Check(
        "nvml.values",
        "No value had to be left out because it made no sense or was not available.",
        "docs/operations.md explains each reason; a newer driver fixes most.",
        driver.values,
    ),
    Check(
        "gpu.recovery",
        "The driver does not ask for a reset, a reboot or the like.",
        "Drain the node, then do what the driver asks for.",
        hardware.recovery,
    ),
    Check(
        "gpu.memory",
        "No bad memory is waiting to be replaced by spare memory, and no replacement failed.",
        "Drain the node when you can, then run nvidia-smi --gpu-reset or reboot.",
        hardware.memory,
    ),
    Check(
        "gpu.xid",
        "The driver has raised no XID error while podgpu was listening.",
        "Look up the code in NVIDIA's list of XID errors, and search the kernel log for it.",
        hardware.xid,
    ),
    Check(
        "gpu.ecc",
        "No card has had memory errors that could not be corrected.",
        "If the count grows, drain the node and run NVIDIA's field diagnostics.",
        hardware.ecc,
    ),
    Check(
        "gpu.throttled",
        "Neither heat nor power slows a card down.",
        "Check the cooling and the power supply of the node.",
        hardware.throttled,
    ),
    Check(
        "gpu.switching",
        "No card spends much of its time on context switches.",
        "Let the tenants run side by side, with MPS or MIG, or give each of them more work at a time.",
        hardware.switching,
    ),
    Check(
        "gpu.link",
        "Each PCIe link is as wide as the card and the slot allow.",
        "Reseat the card, or check the riser and the slot.",
        hardware.link,
    ),
    Check(
        "mig.instances",
        "A GPU in MIG mode has instances, and podgpu can see them.",
        "Create some. If there are some, set NVIDIA_MIG_MONITOR_DEVICES=all on the agent's container.",
        hardware.instances,
    ),
    Check(
        "mig.profiling",
        "MIG instances provide profiling values; nothing else shows how busy they are.",
        "GPM on instances needs Hopper or newer. If the card is, update the driver.",
        hardware.instance_profiling,
    ),
    Check(
        "proc.host-pid",
        "podgpu is in the node's PID namespace, so that it and the driver use the same PIDs.",
        "Set hostPID: true on the agent's pod.",
        processes.host_pid,
    ),
    Check(
        "proc.hidepid",
        "/proc shows the processes of other users.",
        "Run the agent as root, or mount /proc without hidepid.",
        processes.hidden,
    ),
    Check(
        "proc.owners",
        "The owner of each process on a GPU can be read from its cgroup.",
        "docs/operations.md explains each reason. Please report a cgroup that podgpu does not know.",
        processes.owners,
    ),
    Check(
        "proc.switches",
        "The driver's log of context switches can be read, where it is asked for, and hides nobody.",
        "docs/switches.md says what it takes.",
        processes.switches,
    ),
    Check("kubelet.socket", "The kubelet's pod-resources socket answers.", _BY_REASON, kubernetes.socket),
    Check(
        "kubelet.allocations",
        "The kubelet reports which container was given which device.",
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
        "There is a list of the pods on this node.",
        "Give the agent's service account the role in docs/operations.md, or mount /var/log/pods.",
        kubernetes.source,
    ),
    Check(
        "pods.log-dirs",
        "The kubelet's log folders can be read. They name the pods if nothing else does.",
        _BY_REASON,
        kubernetes.log_dirs,
    ),
    Check(
        "pods.annotations",
        "The pods' annotations can be read. Many schedulers write into them who has which card.",
        "Give the agent's service account the role in docs/operations.md, and mount its token.",
        kubernetes.annotations,
    ),
    Check(
        "pods.names",
        "Every pod on a GPU is in the list of pods.",
        "Set NODE_NAME from spec.nodeName: --node-name must be the node's name in Kubernetes.",
        kubernetes.names,
    ),
    Check(
        "claims.rights",
        "The API server lets podgpu read resource claims, if pods have any.",
        "Allow the agent's service account to get resourceclaims and to list resourceslices.",
        claims.rights,
    ),
    Check(
        "claims.missing",
        "No pod uses a GPU that it was not given.",
        "Look for a privileged container or NVIDIA_VISIBLE_DEVICES=all. `podgpu why POD` shows what is known.",
        claims.missing,
    ),
    Check(
        "claims.excused",
        "Whoever has a card for others, and pays for none of it, is known by something that no tenant can write.",
        "A pod that holds cards for others is one by its namespace: see --sharing.namespaces.",
        claims.excused,
    ),
    Check(
        "sharing.*",
        "Each way to share GPUs that this node shows signs of yields claims, and nothing about them is in doubt.",
        "Make sure that podgpu gets what the system needs: mostly the kubelet's list and the pods' annotations.",
        claims.systems,
    ),
    Check(
        "sharing.unknown-ids",
        "Every device id that the kubelet gave out is understood.",
        "podgpu knows no system with such ids. Please report the resource and the id. Of two pods with one device,"
        " one has ended: nothing is booked by it until the kubelet forgets that pod.",
        claims.unknown_ids,
    ),
    Check(
        "holders.idle",
        "Nobody holds a share of a GPU without using it for the time of --idle.after.",
        "Ask its owner, or scale it down. `podgpu idle` lists them all, with what that costs.",
        claims.idle,
    ),
    Check("books.balance", "Containers and the rest add up to the GPU.", _REPORT, accounting.balance),
    Check(
        "books.unattributed",
        "At most a tenth of the memory, the busy time and the energy has no known owner.",
        "See the proc and pods checks. `podgpu snapshot` shows the processes.",
        accounting.unattributed,
    ),
    Check(
        "books.sampling",
        "The driver's samples name whoever shares a GPU as often as it is there: nobody rests around them.",
        "--switches=check would settle it: it compares the samples with the driver's log of context switches.",
        accounting.sampling,
    ),
    Check(
        "node.clock",
        "NTP or the like keeps the clock right; the clock of a remote agent agrees with this machine's.",
        "Start chrony or systemd-timesyncd on the node. A wrong clock breaks TLS and shifts every sample.",
        environment.clock,
    ),
    Check(
        "dialect.dcgm-fields",
        "Every counter of --dcgm.collectors is available without DCGM.",
        "Remove the field from the list, or read dcgm-exporter's own page: docs/compatibility.md.",
        environment.dcgm_fields,
    ),
    Check(
        "dialect.shared-pods",
        "On a dcgm page, a query for a pod finds it, also on a GPU that several pods share.",
        "If OpenCost, KEDA or the like ask for pods, set --dcgm.per-container=on. Queries about cards then need "
        "max by (UUID): docs/migration.md has the figures.",
        environment.shared_pods,
    ),
    Check(
        "names.renamed",
        "No metric that this version serves is about to lose its name.",
        "Use the new name in queries, alerts and dashboards: docs/stability.md.",
        environment.renamed,
    ),
    Check("part.*", "Every other part of podgpu works.", _BY_REASON, environment.parts),
)


def examine(snapshot: Snapshot, machine: Machine, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    return tuple(finding for check in checks for finding in _findings(check, snapshot, machine))


def _findings(check: Check, snapshot: Snapshot, machine: Machine) -> list[Finding]:
    """A check that breaks must not take the others with it."""
    try:
        judged = check.judge(snapshot, machine)
        verdicts = {"": judged} if isinstance(judged, CheckResult) else judged
        return [
            finding(check.id.replace("*", name), check.remedy, verdict) for name, verdict in verdicts.items()
        ]
    except Exception as error:
        detail = line(f"this check broke, which is a bug in podgpu: {type(error).__name__}: {error}")
        return [Finding(id=check.id, status=Status.FAIL, detail=detail, advice=_REPORT)]
