"""cAdvisor's accelerator metrics, as it had them up to 0.46.

There, every container showed the whole card's numbers. Here they are its own, unless the option asks for the card's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.model import Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._holding import Holding, add, holdings, percent
from podgpu.views.family import Family, labels_text

LABELS = ("acc_id", "container", "make", "model", "namespace", "pod")
MAKE = "nvidia"


@dataclass(frozen=True, kw_only=True)
class Options:
    values: str = option.one(
        option.Option(
            flag="--dialect.cadvisor.values",
            group=option.DIALECTS,
            help="Whose use /metrics/cadvisor shows: the container's own, or the whole card's as cAdvisor did.",
            parse=OneOf(("container", "card")),
            default="container",
        )
    )


def families(snapshot: Snapshot, options: Options) -> list[Family]:
    is_of_card = options.values == "card"
    total = _family("memory_total_bytes", "Total accelerator memory.")
    used = _family("memory_used_bytes", "Total accelerator memory allocated.")
    duty = _family(
        "duty_cycle",
        "Percent of time over the past sample period during which the accelerator was actively processing.",
    )
    for one in holdings(snapshot):
        labels = _labels(one)
        _put(total, labels, one.reading("memory_total_bytes"))
        if is_of_card:
            _put(used, labels, one.reading("memory_used_bytes"))
            _put(duty, labels, percent(_device_ratio(one)))
        else:
            add(used, labels, one.memory_bytes)
            add(duty, labels, percent(one.sm_ratio))
    return [total, used, duty]


def _family(name: str, help_text: str) -> Family:
    return Family(f"container_accelerator_{name}", Kind.GAUGE, help_text, Worth.CORE)


def _labels(one: Holding) -> str:
    container, model = one.container, one.device.gpu.model
    values = (one.uuid, container.container, MAKE, model, container.namespace, container.pod)
    return labels_text(LABELS, values)


def _put(family: Family, labels: str, value: float | None) -> None:
    if value is not None:
        family.samples[labels] = value


def _device_ratio(one: Holding) -> float | None:
    """An instance has no utilization but what the profiling counters say."""
    return one.reading("graphics_engine_active_ratio" if one.mig else "utilization_ratio")


PAGES: Mapping[str, Families] = {"/metrics/cadvisor": families}
DOCUMENTS: Mapping[str, Document] = {}
