"""A node's snapshot for a view of many nodes: who is on which card, the books, and the readings that such views show.

All other readings are left out, and so are the owners of processes with their evidence, tenants that ended, and the
containers of pods. `podgpu why` gets those from the agent itself.
"""

from msgspec.structs import replace

from podgpu.model import Card, Holder, Instance, Process, Reading, Rest, Snapshot, Tenant
from podgpu.views.dialects import container_json
from podgpu.views.format import KeyReadings

_XIDS = ("xid_last_code", "xid_last_timestamp_seconds")
_METRICS = frozenset({*KeyReadings.__struct_fields__, "power_limit_watts", *_XIDS})
# Shown where they are not 0.
_ALARMS = frozenset(
    {"recovery_action", "row_remap_failed", "row_remap_pending", "retired_pages_pending", "ecc_errors_total"}
)


def slim(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        cards=tuple(map(_card, snapshot.cards)),
        pods=tuple(
            replace(pod, containers=(), annotations={}, resource_claims={}, extended=())
            for pod in snapshot.pods
        ),
        errors=(),
    )


def _card(card: Card) -> Card:
    return replace(
        card,
        readings=_readings(card.readings),
        instances=tuple(
            Instance(mig=instance.mig, readings=_readings(instance.readings)) for instance in card.instances
        ),
        tenants=tuple(map(_tenant, card.tenants)),
        ended=(),
        rest=tuple(map(_rest, card.rest)),
    )


def _readings(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    return tuple([reading for reading in readings if _is_shown(reading)])


def _is_shown(reading: Reading) -> bool:
    return (
        reading.metric in _METRICS
        or (reading.metric in _ALARMS and bool(reading.value))
        or (reading.metric, reading.labels) in container_json.READINGS
    )


def _tenant(tenant: Tenant) -> Tenant:
    return replace(tenant, processes=tuple(replace(process, holder=None) for process in tenant.processes))


def _rest(rest: Rest) -> Rest:
    """Keep the titles of owners that have no pod: nothing else names them."""
    return replace(rest, processes=tuple(map(_outsider, rest.processes)))


def _outsider(process: Process) -> Process:
    holder = process.holder
    if holder is None:
        return process
    return replace(
        process, holder=Holder(pid=holder.pid, kind=holder.kind, command=holder.command, title=holder.title)
    )
