"""Whose a row of a page is, by its labels in all the spellings of the last ten years."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

Labels = Mapping[str, str]

_UUID = re.compile(r"GPU-[0-9A-Za-z-]{1,64}")
_DEVICE = re.compile(r"nvidia([0-9]{1,4})")
_NUMBER = re.compile(r"[0-9]{1,6}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
LONGEST_FACT = 128

OWN = ("namespace", "pod", "container")
OLD = ("pod_namespace", "pod_name", "container_name")
# Prometheus moves the exporter's labels aside and puts its own in their place: those name the exporter itself.
MOVED = ("exported_namespace", "exported_pod", "exported_container")
_SCRAPED = ("job", "instance")


class Tenant(Struct, frozen=True):
    namespace: str
    pod: str
    container: str


class Place(Struct, frozen=True, kw_only=True):
    """A card, or with `instance` one of its GPU instances, and to whom the page says that it was given.

    `replica` is the number of a part, where the card is shared. `is_divided` marks a row of a card that stands for
    some instance of it.
    """

    uuid: str
    instance: int | None = None
    tenant: Tenant | None = None
    replica: int | None = None
    is_divided: bool = False

    @property
    def is_shared_out(self) -> bool:
        return self.tenant is not None or self.replica is not None


def is_relabelled(rows: Iterable[Labels]) -> bool:
    """Whether the page came by way of Prometheus. Then an idle card, too, seems to have a pod: the exporter's."""
    return any(not labels.keys().isdisjoint(MOVED) or all(map(labels.get, _SCRAPED)) for labels in rows)


def place(labels: Labels, *, relabelled: bool) -> Place | None:
    """None for what is no card's: processors, switches, single links, rows without a UUID."""
    uuid = labels.get("UUID") or labels.get("uuid") or ""
    instance = _number(labels.get("GPU_I_ID", ""))
    if (
        not _UUID.fullmatch(uuid)
        or labels.get("nvlink")
        or (instance is None and labels.get("GPU_I_PROFILE"))
    ):
        return None
    return Place(
        uuid=uuid,
        instance=instance,
        tenant=_tenant(labels, (MOVED, OLD) if relabelled else (OWN, OLD)),
        replica=_number(labels.get("vgpu", "")),
        is_divided=bool(labels.get("dra_mig_profile") or labels.get("dra_mig_device_uuid")),
    )


def index(labels: Labels) -> int | None:
    return _number(labels.get("gpu", ""))


def minor(labels: Labels) -> int | None:
    found = _DEVICE.fullmatch(labels.get("device", ""))
    return int(found[1]) if found else None


def fact(labels: Labels, *names: str) -> str:
    """Return the first of these labels that is there, as one short line."""
    text = next((labels[name] for name in names if labels.get(name)), "")
    return "".join(filter(str.isprintable, text[:LONGEST_FACT]))


def _tenant(labels: Labels, spellings: Iterable[tuple[str, str, str]]) -> Tenant | None:
    for spelling in spellings:
        namespace, pod, container = (labels.get(name, "") for name in spelling)
        if _LABEL.fullmatch(namespace) and _SUBDOMAIN.fullmatch(pod) and _LABEL.fullmatch(container):
            return Tenant(namespace, pod, container)
    return None


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
