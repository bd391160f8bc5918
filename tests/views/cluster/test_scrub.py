"""A recording or a report that leaves the house names nobody."""

import re
from typing import get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode, Fault, PartStatus, PendingPod
from podgpu.views.cluster import scrub
from podgpu.views.cluster.json import encode
from podgpu.views.cluster.scrub import Scrubber
from podgpu.views.why_evidence import pod_names
from tests.tree import SETTINGS
from tests.views.quirks import SNAPSHOT

CLUSTER = reconclude(
    Cluster(
        taken_at=1.0,
        version="1",
        name="secret-lab",
        nodes=(ClusterNode(name=SNAPSHOT.node, state="stale", detail="secret detail", snapshot=SNAPSHOT),),
        pending=(PendingPod(namespace="secret-ns", name="secret-pod", reason="secret reason", claims=("secret-c",)),),
        parts=(PartStatus(name="api", up=False, fault=Fault(reason="tls", detail="https://secret")),),
    ),
    SETTINGS,
)
# Whatever a person, a company or a machine may be found by.
NAMES = re.compile(
    r"secret|llama|notebook|team-|embed|dev-0|gpu-node|evil|11111111|22222222|33333333|44444444|GPU-[0-9a-f]{8}-"
    r"|kubepods|alice|python|0000000[0-9]:",
)


# Text that names nobody. A new field of text belongs here, or among those that are renamed or dropped.
HARMLESS = {
    "Cluster": {"version"},
    "ClusterNode": {"state", "origin", "reason", "allocatable", "model"},
    "Snapshot": {"version", "driver_version", "nvml_version"},
    "GuestCard": {"model", "driver"},
    "Gpu": {
        "model",
        "architecture",
        "sampled_by",
        "compute_capability",
        "vbios",
        "brand",
        "inforom_image",
        "inforom_oem",
        "inforom_ecc",
        "inforom_power",
    },
    "Fault": {"reason", "call"},
    "Refused": {"reason", "call"},
    "Reading": {"metric", "labels"},
    "MigInstance": {"profile"},
    "Workload": {"kind"},
    "Claim": {"resource", "system", "source"},
    "UnplacedHolding": {"resource", "system"},
    "Process": {"kinds"},
    "Holder": {"kind", "reason"},
    "Owner": {"runtime", "qos"},
    "Band": {"certainty", "rests_on"},
    "Sampling": {"found"},
    "Booking": {"method"},
    "Tenant": {"without_claim"},
    "Rest": {"reason"},
    "Pod": {"phase", "qos"},
    "OwnerReference": {"kind", "api_version"},
    "PodContainer": {"limits"},
    "ExtendedUse": {"resource", "request"},
    "Allocation": {"resource"},
    "SharingStatus": {"system", "missing"},
    "PartStatus": {"name"},
    "ErrorCount": {"source", "reason"},
    "PendingPod": {"asks"},
    "Use": {"certainty"},
    "CardUse": {"period", "note"},
    "Holding": {"state", "evidence"},
    "Card": {"problems", "severity"},
    "Excused": {"role"},
    "XidRecord": {"advice", "meaning", "severity"},
}


def test_every_text_of_the_model_is_renamed_dropped_or_harmless() -> None:
    left: dict[str, set[str]] = {}

    def walk(kind: object) -> None:
        for part in get_args(kind):
            walk(part)
        if not (isinstance(kind, type) and issubclass(kind, Struct)) or kind.__name__ in left:
            return
        left[kind.__name__] = set()
        for name, of in get_type_hints(kind).items():
            if name not in scrub._NAMES.get(kind, {}) and name not in scrub._DROPPED.get(kind, {}):
                left[kind.__name__] |= {name} if "str" in str(of) else set()
                walk(of)

    walk(Cluster)
    assert {kind: fields for kind, fields in left.items() if fields} == HARMLESS


def test_no_name_is_left() -> None:
    before = encode(CLUSTER).decode()
    assert len(set(NAMES.findall(before))) > 8
    after = encode(Scrubber(b"k" * 16).scrubbed(CLUSTER)).decode()
    assert not NAMES.findall(after)


def test_equal_names_stay_equal_so_that_the_picture_is_whole() -> None:
    after = Scrubber(b"k" * 16).scrubbed(CLUSTER)
    (node,) = after.nodes
    assert node.snapshot is not None
    assert node.name == node.snapshot.node
    assert len(pod_names(node.snapshot)) == len(pod_names(SNAPSHOT))
    for card in node.snapshot.cards:
        assert all(claim.gpu == card.gpu.uuid for tenant in card.tenants for claim in tenant.claims)
    assert after.insight and CLUSTER.insight
    assert [problem.kind for problem in after.insight.problems] == [
        problem.kind for problem in CLUSTER.insight.problems
    ]


def test_a_node_of_several_clusters_is_still_named_after_its_cluster() -> None:
    node = ClusterNode(name=f"secret-lab/{SNAPSHOT.node}", cluster="secret-lab", state="fresh", snapshot=SNAPSHOT)
    (after,) = Scrubber(b"k" * 16).scrubbed(replace(CLUSTER, nodes=(node,))).nodes
    assert after.snapshot is not None
    assert after.name == f"{after.cluster}/{after.snapshot.node}"
    assert "secret" not in after.name


def test_another_key_gives_other_names() -> None:
    first, other = (Scrubber(key * 16).scrubbed(CLUSTER) for key in (b"1", b"2"))
    assert first.nodes[0].name != other.nodes[0].name
    bare = {"nodes": (), "name": "", "pending": (), "insight": None}
    assert replace(first, **bare) == replace(other, **bare)
