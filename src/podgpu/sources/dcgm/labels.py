"""Which card and which pod a row of a page belongs to, by its labels. All versions of dcgm-exporter are understood.

A row may also carry labels that a pod gave itself, under any name. dcgm-exporter prints its labels of the card first,
up to the host's name, and its labels of the pod last. A pod's own labels stand between these, or among the last,
sorted.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice, takewhile

from msgspec import Struct

Labels = Mapping[str, str]

_UUID = re.compile(r"GPU-[0-9A-Za-z-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
LONGEST_FACT = 128

OWN = ("namespace", "pod", "container")
OLD = ("pod_namespace", "pod_name", "container_name")
# Prometheus renames the exporter's labels and puts its own in their place. Its own name the exporter's pod.
MOVED = ("exported_namespace", "exported_pod", "exported_container")
_MOVED_TWICE = frozenset(f"exported_{name}" for name in MOVED)
_SCRAPED = ("job", "instance")

_UUIDS = ("UUID", "uuid")  # pages with `uuid` use the old spelling of pods
_INSTANCE = ("GPU_I_PROFILE", "GPU_I_ID")  # in the exporter's order, which is not alphabetical
_HOST = frozenset({"Hostname", "hostname"})
_CARD = frozenset({"gpu", *_UUIDS, "pci_bus_id", "device", "modelName", *_INSTANCE})


class PageTenant(Struct, frozen=True):
    namespace: str
    pod: str
    container: str


class PagePlace(Struct, frozen=True, kw_only=True):
    """A card, or its GPU instance `instance`, and the container that has it according to the page.

    `replica` is the number of the replica if the card is shared. `is_divided` marks a row of the card that really
    describes an instance, without saying which.
    """

    uuid: str
    instance: int | None = None
    tenant: PageTenant | None = None
    replica: int | None = None
    is_divided: bool = False

    @property
    def is_shared_out(self) -> bool:
        return self.tenant is not None or self.replica is not None


def is_relabelled(rows: Iterable[Labels]) -> bool:
    """Whether the page passed through Prometheus. If so, even an idle card seems to have a pod: the exporter's."""
    cards = [labels for labels in rows if _uuid(labels)]
    return bool(cards) and all(
        all(map(labels.get, _SCRAPED)) and not _is_as_printed(labels) for labels in cards
    )


def place(labels: Labels, last: Labels, *, relabelled: bool) -> PagePlace | None:
    """Return None for a row that is not about a card: processors, switches, single links, rows without a UUID.

    `last` has the last values of labels that the row carries more than once.
    """
    of_card, of_pod = _of_card(labels), {**labels, **last}
    uuid = _uuid(of_card)
    instance = _number(of_card.get("GPU_I_ID", ""))
    if not uuid or of_card.get("nvlink") or (instance is None and of_card.get("GPU_I_PROFILE")):
        return None
    return PagePlace(
        uuid=uuid,
        instance=instance,
        tenant=_tenant(of_pod, _spelling(of_card, of_pod, relabelled=relabelled)),
        replica=_number(of_pod.get("vgpu", "")),
        is_divided=bool(of_pod.get("dra_mig_profile") or of_pod.get("dra_mig_device_uuid")),
    )


def index(labels: Labels) -> int | None:
    return _number(labels.get("gpu", ""))


def minor(labels: Labels) -> int | None:
    """Return N of /dev/nvidiaN. The label `device` looks like it, but has DCGM's index."""
    return _number(labels.get("DCGM_FI_DEV_MINOR_NUMBER", ""))


def fact(labels: Labels, *names: str) -> str:
    """Return the first of these labels that has a value, shortened to one printable line."""
    text = next((labels[name] for name in names if labels.get(name)), "")
    return "".join(filter(str.isprintable, text[:LONGEST_FACT]))


def _is_as_printed(labels: Labels) -> bool:
    """Whether the labels are in dcgm-exporter's own order. A program that passes a page on sorts them."""
    first, second = (*islice(labels, 2), "", "")[:2]
    return first == "gpu" and second in _UUIDS


def _of_card(labels: Labels) -> Labels:
    """Return the exporter's labels of the card, without any label that may come from a pod."""
    if not _is_as_printed(labels) or labels.keys().isdisjoint((*OWN, *OLD)):
        return labels
    is_host_named = not labels.keys().isdisjoint(_HOST)
    names = list(takewhile(lambda name: name not in _HOST if is_host_named else name in _CARD, labels))
    if tuple(name for name in names if name in _INSTANCE) != _INSTANCE:
        names = [name for name in names if name not in _INSTANCE]  # a pod may have set them
    return {name: labels[name] for name in names}


def _uuid(labels: Labels) -> str:
    """Return the first UUID: a pod's own label in the other spelling comes later."""
    text = next((labels[name] for name in labels if name in _UUIDS and labels[name]), "")
    return text if _UUID.fullmatch(text) else ""


def _spelling(of_card: Labels, of_pod: Labels, *, relabelled: bool) -> tuple[str, str, str] | None:
    is_old = next(name for name in of_card if name in _UUIDS) == "uuid"
    if relabelled and not is_old:
        # Prometheus renames a label only where it adds one of that name. If it renamed a label twice, it was the pod's.
        was_moved = of_pod.keys() >= set(OWN) and of_pod.keys().isdisjoint(_MOVED_TWICE)
        return MOVED if was_moved else None
    usual = [OLD] if relabelled else [OLD, OWN] if is_old else [OWN, OLD]
    return next((names for names in usual if not of_pod.keys().isdisjoint(names)), None)


def _tenant(labels: Labels, spelling: tuple[str, str, str] | None) -> PageTenant | None:
    namespace, pod, container = (labels.get(name, "") for name in spelling or OWN)
    if spelling and _LABEL.fullmatch(namespace) and _SUBDOMAIN.fullmatch(pod) and _LABEL.fullmatch(container):
        return PageTenant(namespace, pod, container)
    return None


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
