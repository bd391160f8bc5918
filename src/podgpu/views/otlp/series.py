"""The native families, with containers distinguished by the UID of their pod and with their workload as attributes."""

from collections.abc import Iterator

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model import Card, ContainerRef, Snapshot, Tenant, Workload
from podgpu.views import books, native
from podgpu.views.otlp.names import workload_attributes
from podgpu.views.series import Family, Labels

_ROWS = {name: rows[0] for name, rows in catalog.families().items()}
_CONTAINER = {name: row for name, row in _ROWS.items() if row.scope is Scope.CONTAINER}


def families(snapshot: Snapshot) -> list[Family]:
    # Old names are for pages alone.
    current = [family for family in native.families(snapshot, {}) if family.name in _ROWS]
    plain = [family for family in current if family.name not in _CONTAINER]
    return [*plain, *_containers(snapshot)]


def _containers(snapshot: Snapshot) -> list[Family]:
    found = {name: Family(name, row.kind, row.help, row.worth) for name, row in _CONTAINER.items()}
    for card in snapshot.cards:
        place = (snapshot.node, str(card.gpu.index), card.gpu.uuid)
        for subject, live, all_of_them in _tenants(card, place):
            readings = [*books.counters(all_of_them, card.ability)]
            readings += books.gauges(live) if live and card.fault is None else ()
            for reading in readings:
                name = Scope.CONTAINER.prefix + reading.metric
                own = Labels(_CONTAINER[name].label_names, reading.labels)
                found[name].put(reading.value, *((subject, own) if own.names else (subject,)))
    return [family for family in found.values() if family.samples]


def _tenants(card: Card, place: books.Place) -> Iterator[tuple[Labels, list[Tenant], list[Tenant]]]:
    """Yield each container on the card: its attributes, its tenants there now, and those with the former ones."""
    grouped: dict[tuple[str, ContainerRef], list[Tenant]] = {}
    for tenant in (*card.tenants, *card.ended):
        grouped.setdefault((tenant.mig, tenant.container), []).append(tenant)
    live = set(map(id, card.tenants))
    for (mig, container), tenants in grouped.items():
        workload = next((one.workload for one in tenants if one.workload), None)
        yield _subject(place, mig, container, workload), [one for one in tenants if id(one) in live], tenants


def _subject(place: books.Place, mig: str, container: ContainerRef, workload: Workload | None) -> Labels:
    names = (container.namespace, container.pod, container.container)
    facts = dict(zip(Scope.CONTAINER.labels, (*place, mig, *names), strict=True))
    more = workload_attributes(workload) if workload else {}
    return Labels.of({**facts, "pod_uid": container.pod_uid, **more})
