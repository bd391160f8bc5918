"""cAdvisor's accelerator metrics, as it had them up to 0.46.

cAdvisor showed the numbers of the whole card for every container. Here each container has its own, unless the option
asks for the card's.
"""

from dataclasses import dataclass

from podgpu import option
from podgpu.model import PodContainer, Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._pod_tenant import PodTenant, percent, pod_tenants
from podgpu.views.sample_format import go
from podgpu.views.series import Family, Labels

MAKE = "nvidia"
PREFIX = "container_accelerator_"
DUTY_HELP = "Percent of time over the past sample period during which the accelerator was actively processing."


@dataclass(frozen=True, kw_only=True)
class CadvisorOptions:
    values: str = option.DIALECTS.single(
        "--dialect.cadvisor.values",
        help="Whose use /metrics/cadvisor shows: the container's own, or the whole card's as cAdvisor did.",
        parse=OneOf(("container", "card")),
        default="container",
    )


def families(snapshot: Snapshot, options: CadvisorOptions) -> list[Family]:
    is_of_card = options.values == "card"
    total = Family.gauge(f"{PREFIX}memory_total_bytes", "Total accelerator memory.", go)
    used = Family.gauge(f"{PREFIX}memory_used_bytes", "Total accelerator memory allocated.", go)
    duty = Family.gauge(f"{PREFIX}duty_cycle", DUTY_HELP, go)
    containers = {(pod.uid, each.name): each for pod in snapshot.pods for each in pod.containers if pod.uid}
    for tenant in pod_tenants(snapshot):
        labels = _labels(tenant, containers.get((tenant.container.pod_uid, tenant.container.container)))
        total.put(tenant.reading("memory_total_bytes"), labels)
        if is_of_card:
            used.put(tenant.reading("memory_used_bytes"), labels)
            duty.put(percent(_device_ratio(tenant)), labels)
        else:
            used.add(tenant.memory_bytes, labels)
            duty.add(percent(tenant.sm_ratio), labels)
    return [total, used, duty]


def _labels(tenant: PodTenant, known: PodContainer | None) -> Labels:
    container = tenant.container
    # These stay the same as long as the container lives. With containerd, cAdvisor's name of a container is its id.
    runtime = {"id": known.cgroup, "image": known.image, "name": known.container_id} if known else {}
    pairs = {
        "acc_id": tenant.uuid,
        "container": container.container,
        "make": MAKE,
        "model": tenant.gpu.model,
        "namespace": container.namespace,
        "pod": container.pod,
    }
    return Labels.by_name(pairs | {name: text for name, text in runtime.items() if text})


def _device_ratio(tenant: PodTenant) -> float | None:
    """A MIG instance reports no utilization, only profiling counters."""
    return tenant.reading("graphics_engine_active_ratio" if tenant.mig else "utilization_ratio")


DIALECT = Dialect(pages={"/metrics/cadvisor": families}, options=CadvisorOptions)
