"""HAMi's names of families and labels: those since 2.9, and those before."""

from collections.abc import Callable, Mapping
from operator import add
from typing import NamedTuple

Pairs = Mapping[str, str]

# The names of labels before 2.9. There were no others.
LEGACY_LABELS = {
    **{kind: kind for kind in ("context", "data", "module", "offset")},
    "container": "ctrname",
    "container_index": "containeridx",
    "device_cores": "devicecores",
    "device_index": "deviceidx",
    "device_memory_limit": "devicememorylimit",
    "device_type": "devicetype",
    "device_used_core": "deviceusedcore",
    "device_uuid": "deviceuuid",
    "gpu_instance_id": "instanceid",
    "mig_name": "migname",
    "namespace": "podnamespace",
    "node": "nodeid",
    "pod": "podname",
    "shared_containers": "sharedcontainers",
    "vdevice_index": "vdeviceid",
}


class Naming(NamedTuple):
    """The names of one family. `joined` makes one value from those of two pods with the same name.

    A family without a `name` has only its legacy one. `node` is what the family called the node before 2.9. `group` is
    what clients can ask for together.
    """

    name: str
    help: str
    legacy: str = ""
    legacy_help: str = ""
    joined: Callable[[float, float], float] = add
    node: str = "nodeid"
    group: str = "containers"


class Samples(NamedTuple):
    """Values that share their labels."""

    pairs: Pairs
    values: Mapping[Naming, float | None]


def with_new_names(one: Samples) -> Samples:
    return Samples(one.pairs, {naming: value for naming, value in one.values.items() if naming.name})


def with_old_names(one: Samples) -> list[Samples]:
    """The families of a sample may call the node by different names."""
    by_node: dict[str, dict[Naming, float | None]] = {}
    for naming, value in one.values.items():
        if naming.legacy:
            old = Naming(
                naming.legacy, naming.legacy_help or naming.help, joined=naming.joined, group=naming.group
            )
            by_node.setdefault(naming.node, {})[old] = value
    return [Samples(_old_labels(one.pairs, node), values) for node, values in by_node.items()]


def _old_labels(pairs: Pairs, node: str) -> Pairs:
    names = LEGACY_LABELS | {"node": node}
    return {names[key]: text for key, text in pairs.items() if key in names}
