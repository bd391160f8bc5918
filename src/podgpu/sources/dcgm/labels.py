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
_MIG_UUID = re.compile(r"MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
_CLAIM = ("dra_claim_name", "dra_claim_namespace", "dra_device_name", "dra_driver_name", "dra_pool_name")
_HOST = frozenset({"Hostname", "hostname"})
_CARD = frozenset({"gpu", *_UUIDS, "pci_bus_id", "device", "modelName", *_INSTANCE})


class PageTenant(Struct, frozen=True):
    """`container` is empty on a card that several containers of the pod were given, as on podgpu's own pages."""

    namespace: str
    pod: str
    container: str


class ClaimedMig(Struct, frozen=True):
    """The MIG device of a resource claim, as the row of its card names it."""

    uuid: str
    profile: str


class PagePlace(Struct, frozen=True, kw_only=True):
    """A card, or its GPU instance `instance`, and the container that has it according to the page.

    `replica` is the number of the replica if the card is shared. `is_divided` marks a row of the card that really
    describes an instance, without saying which; `claimed` says it. A row with `is_link` is about a single link.
    """

    uuid: str
    instance: int | None = None
    tenant: PageTenant | None = None
    replica: int | None = None
    is_divided: bool = False
    claimed: ClaimedMig | None = None
    is_link: bool = False

    @property
    def is_shared_out(self) -> bool:
        return self.tenant is not None or self.replica is not None


def is_relabelled(rows: Iterable[Labels]) -> bool:
    """Whether the page passed through Prometheus. If so, even an idle card seems to have a pod: the exporter's."""
    cards = [labels for labels in rows if _uuid(labels)]
    return bool(cards) and all(all(map(labels.get, _SCRAPED)) and not _is_as_printed(labels) for labels in cards)


def place(labels: Labels, last: Labels, *, relabelled: bool) -> PagePlace | None:
    """Return None for a row that is not about a card: processors, switches, rows without a UUID.

    `last` has the last values of labels that the row carries more than once.
    """
    of_card, of_pod = _of_card(labels), {**labels, **last}
    if of_card.get("nvlink"):
        return _place_of_link(of_card)
    uuid = _uuid(of_card)
    instance = _number(of_card.get("GPU_I_ID", ""))
    if not uuid or (instance is None and of_card.get("GPU_I_PROFILE")):
        return None
    tenant = _tenant(of_pod, _spelling(of_card, of_pod, relabelled=relabelled))
    return PagePlace(
        uuid=uuid,
        instance=instance,
        tenant=tenant,
        claimed=_claimed(of_pod) if tenant else None,
        replica=_number(of_pod.get("vgpu", "")),
        is_divided=bool(of_pod.get("dra_mig_profile") or of_pod.get("dra_mig_device_uuid")),
    )


def _place_of_link(labels: Labels) -> PagePlace | None:
    uuid = _uuid(labels) or labels.get("gpu_uuid", "")
    return PagePlace(uuid=uuid, is_link=True) if _UUID.fullmatch(uuid) else None


def _claimed(labels: Labels) -> ClaimedMig | None:
    """Only the full set of labels counts: a pod may have set one or the other itself."""
    uuid, profile = labels.get("dra_mig_device_uuid", ""), labels.get("dra_mig_profile", "")
    is_whole = all(map(labels.get, _CLAIM)) and profile and _MIG_UUID.fullmatch(uuid)
    return ClaimedMig(uuid, profile) if is_whole else None


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
        # Names in the old spelling were not renamed. Beside others they may be the pod's own labels.
        is_old_alone = all(map(of_pod.get, OLD)) and not any(map(of_pod.get, OWN))
        return MOVED if was_moved else OLD if is_old_alone else None
    usual = [OLD] if relabelled else [OLD, OWN] if is_old else [OWN, OLD]
    return next((names for names in usual if any(map(of_pod.get, names))), None)


def _tenant(labels: Labels, spelling: tuple[str, str, str] | None) -> PageTenant | None:
    namespace, pod, container = (labels.get(name, "") for name in spelling or OWN)
    # Prometheus drops a label that is empty.
    is_nameless = not container and (spelling == MOVED or (spelling or OWN)[-1] in labels)
    is_pod = _LABEL.fullmatch(namespace) and _SUBDOMAIN.fullmatch(pod)
    if spelling and is_pod and (is_nameless or _LABEL.fullmatch(container)):
        return PageTenant(namespace, pod, container)
    return None


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
