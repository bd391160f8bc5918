"""The snapshot as podgpu's own metric families.

The catalog says what exists; only what concerns presence and the agent itself is known here by name. The books are in
`workload`.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from podgpu import catalog
from podgpu.catalog.row import Scope, Worth
from podgpu.model import Device, Instance, PartStatus, Reading, Snapshot
from podgpu.views import workload
from podgpu.views.family import Family, block, count, pairs_text

_GPU_LABELS = ("node", "gpu", "uuid")
_MIG_LABELS = ("node", "gpu", "uuid", "mig", "profile")

_ROWS = catalog.families()
_LABEL_NAMES = {name: rows[0].label_names for name, rows in _ROWS.items()}


class _Page:
    """Families being filled."""

    def __init__(self) -> None:
        self.families = {
            name: Family(name, rows[0].kind, rows[0].help, Worth(max(row.worth.value for row in rows)))
            for name, rows in _ROWS.items()
        }
        # Every card has the same few label values of its own: each is written once per page.
        self._own: dict[tuple[str, tuple[str, ...]], str] = {}

    def add(self, scope: Scope, subject: str, readings: Iterable[Reading]) -> None:
        """Take readings whose labels all begin with the text `subject`."""
        prefix, families, bare = scope.value, self.families, block(subject)
        for reading in readings:
            name, value, labels = prefix + reading.metric, reading.value, reading.labels
            names = _LABEL_NAMES.get(name)
            if names is None or len(names) != len(labels) or not isfinite(value):
                continue
            text = block(subject, self._own_pairs(name, labels)) if labels else bare
            families[name].samples[text] = value

    def filled(self) -> list[Family]:
        return [family for family in self.families.values() if family.samples]

    def _own_pairs(self, name: str, labels: tuple[str, ...]) -> str:
        text = self._own.get((name, labels))
        if text is None:
            text = self._own[name, labels] = pairs_text(_LABEL_NAMES[name], labels)
        return text


def families(
    snapshot: Snapshot, series_dropped: Mapping[str, int], *, processes: bool = False
) -> list[Family]:
    """`series_dropped` is what the budget has cut so far, by family; `processes` adds a series for each."""
    page = _Page()
    page.add(Scope.AGENT, "", _agent(snapshot, series_dropped))
    for device in snapshot.devices:
        _add_device(page, snapshot, device)
    for scope, subject, readings in workload.books(snapshot):
        page.add(scope, subject, readings)
    for text in workload.pods(snapshot):
        page.families[workload.POD_INFO].samples[text] = 1.0
    if processes:
        for scope, subject, readings in workload.processes(snapshot):
            page.add(scope, subject, readings)
    # The number counts itself.
    page.add(Scope.AGENT, "", [Reading("series", float(count(page.filled()) + 1))])
    return page.filled()


def _add_device(page: _Page, snapshot: Snapshot, device: Device) -> None:
    gpu = device.gpu
    card = (snapshot.node_of(gpu), str(gpu.index), gpu.uuid)
    subject = pairs_text(_GPU_LABELS, card)
    page.add(Scope.GPU, subject, device.readings)
    page.add(Scope.GPU, subject, _presence(snapshot, device))
    for instance in device.instances:
        page.add(Scope.MIG, _mig_subject(card, instance), instance.readings)


def _mig_subject(card: tuple[str, str, str], instance: Instance) -> str:
    return pairs_text(_MIG_LABELS, (*card, instance.mig.uuid, instance.mig.profile))


def _presence(snapshot: Snapshot, device: Device) -> Iterator[Reading]:
    gpu, fault = device.gpu, device.fault
    yield Reading("up", float(fault is None))
    yield _info(
        Scope.GPU,
        "info",
        {
            "model": gpu.model,
            "driver_version": snapshot.driver_version,
            "pci_bus_id": gpu.pci_bus_id,
            "minor": "" if gpu.minor is None else str(gpu.minor),
            "architecture": gpu.architecture,
            "compute_capability": gpu.compute_capability,
            "vbios": gpu.vbios,
            "mig_enabled": _word(gpu.mig_enabled),
        },
    )
    if fault is not None:
        yield Reading("problem", 1.0, (fault.reason, fault.call))


def _agent(snapshot: Snapshot, series_dropped: Mapping[str, int]) -> Iterator[Reading]:
    yield _info(
        Scope.AGENT,
        "build_info",
        {
            "version": snapshot.version,
            "driver_version": snapshot.driver_version,
            "nvml_version": snapshot.nvml_version,
            "demo": _word(snapshot.demo),
        },
    )
    yield Reading("up", float(snapshot.up))
    yield Reading("snapshot_timestamp_seconds", snapshot.taken_at)
    yield Reading("interval_seconds", snapshot.interval_seconds)
    for part in snapshot.parts:
        yield from _part(part)
    for error in snapshot.errors:
        yield Reading("errors_total", float(error.count), (error.source, error.reason))
    for family, number in series_dropped.items():
        yield Reading("series_dropped_total", float(number), (family,))


def _part(part: PartStatus) -> Iterator[Reading]:
    source = (part.name,)
    yield Reading("source_up", float(part.up), source)
    yield Reading("source_duration_seconds", part.duration_seconds, source)
    if part.fault is not None and not part.up:
        yield Reading("source_problem", 1.0, (part.name, part.fault.reason))
    if part.age_seconds is not None:
        yield Reading("source_age_seconds", part.age_seconds, source)


def _info(scope: Scope, name: str, facts: Mapping[str, str]) -> Reading:
    """Let the catalog decide which facts are labels, and in which order."""
    return Reading(name, 1.0, tuple(facts[label] for label in _LABEL_NAMES[scope.value + name]))


def _word(flag: bool) -> str:  # noqa: FBT001
    return "true" if flag else "false"
