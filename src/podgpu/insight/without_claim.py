"""Why a tenant uses a card without a claim of its own. Only one of the reasons is an accusation, and it needs proof.

It is judged by pod: containers of a pod may use what any of them was given.
"""

from msgspec.structs import replace

from podgpu.catalog.agent_parts import PODRESOURCES
from podgpu.insight.tenants import is_holder, is_outsider
from podgpu.model import MONITOR, Card, ContainerRef, Snapshot, Tenant

# Its pod was given the card. It is an MPS server, which works for others. It has admin access. It is an init container,
# and the kubelet does not list what these are given.
POD, SERVER, MONITORS, INIT = "pod", "server", "monitor", "init"
# It cannot be said: something that the pod was given is not understood, or the kubelet did not list what pods have.
NOT_UNDERSTOOD, NOT_LISTED = "not_understood", "not_listed"
NOT_GIVEN = "not_given"


def with_reasons(card: Card, snapshot: Snapshot) -> Card:
    """Return the card with the reasons. A store has no evidence for any, and of a silent card there is nothing new."""
    if card.fault is not None or snapshot.stored:
        return card
    tenants = [_with_reason(tenant, card, snapshot) for tenant in card.tenants]
    return replace(card, tenants=tuple(tenants))


def _with_reason(tenant: Tenant, card: Card, snapshot: Snapshot) -> Tenant:
    if is_holder(tenant) or is_outsider(tenant.container) or not tenant.running:
        return tenant
    return replace(tenant, without_claim=_reason(tenant, card, snapshot))


def _reason(tenant: Tenant, card: Card, snapshot: Snapshot) -> str:
    if any(process.holder is not None and process.holder.serves for process in tenant.running):
        return SERVER
    if any(_is_same_pod(other.container, tenant.container) and _covers(other, tenant) for other in card.tenants):
        return POD
    if any(who.role == MONITOR and _is_same_pod(who.container, tenant.container) for who in card.excused):
        return MONITORS
    if _is_init(tenant.container, snapshot):
        return INIT
    if tenant.unsettled:
        return NOT_UNDERSTOOD
    return NOT_GIVEN if _is_listed(tenant, snapshot) else NOT_LISTED


def _is_same_pod(one: ContainerRef | None, other: ContainerRef) -> bool:
    """Two pods of one name are two, unless a UID is not known."""
    if one is None or (one.namespace, one.pod) != (other.namespace, other.pod):
        return False
    return one.pod_uid == other.pod_uid or not (one.pod_uid and other.pod_uid)


def _covers(holder: Tenant, user: Tenant) -> bool:
    """Whether what one holds may be what the other uses: the same MIG instance, unless an instance is not known."""
    return is_holder(holder) and (holder.mig == user.mig or not (holder.mig and user.mig))


def _is_init(container: ContainerRef, snapshot: Snapshot) -> bool:
    return any(
        spec.is_init and spec.name == container.container
        for pod in snapshot.pods
        if pod.uid == container.pod_uid
        for spec in pod.containers
    )


def _is_listed(tenant: Tenant, snapshot: Snapshot) -> bool:
    """Whether the kubelet has listed what pods were given since the tenant's processes started."""
    kubelets = [part for part in snapshot.parts if part.name == PODRESOURCES.name and part.up]
    answered_at = max((snapshot.taken_at - (part.age_seconds or 0.0) for part in kubelets), default=None)
    if answered_at is None:
        return False
    started = [process.holder.started_at for process in tenant.running if process.holder]
    return all(at is None or at <= answered_at for at in started)
