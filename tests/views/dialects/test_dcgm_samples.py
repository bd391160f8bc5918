"""Real pages of dcgm-exporter: the facts of a page go in, and the same rows come out."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from podgpu.catalog import device_rows
from podgpu.catalog.row import Metric
from podgpu.config.precedence import load
from podgpu.model import (
    Card,
    Claim,
    ClaimUse,
    ContainerRef,
    Device,
    Gpu,
    Instance,
    MigInstance,
    Pod,
    PodContainer,
    Reading,
    Snapshot,
    Tenant,
)
from podgpu.views.dialects import dcgm, dcgm_1_x
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.exposition import Format, render
from tests.tree import card

SAMPLES = Path(__file__).parents[2] / "recorded" / "dcgm-exporter"

# Files of the generation that `dcgm` stands in for, and the options that each needs.
SAME_GENERATION = {
    "k8s_busy_t4_no_help_lines": {},
    "k8s_idle_l40s_helm": {},
    "k8s_idle_l4_gpu_operator": {},
    "k8s_t4_aws_partial": {},
    "vgpu_grid_a100_10c": {},
    "k8s_484_lowercase_hostname_t4": {"dcgm_hostname_label": ["hostname"]},
}
# An older one: it has the exporter's own name as a label, and not yet the bus and the meaning of XIDs.
OLDER = re.compile(r',(?:DCGM_FI_PROCESS_NAME|pci_bus_id|err_code|err_msg)="[^"]*"')

LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
# Memory is in whole MiB, so that used, free and the rest come out as they went in.
ROWS: dict[str, Metric] = {}
for row in reversed(device_rows()):
    for alias in filter(None, (row.dcgm, row.dcgm1x)):
        ROWS[alias.name] = row


class Line(NamedTuple):
    name: str
    text: str
    labels: dict[str, str]
    value: float
    number: str


def lines(text: str) -> list[Line]:
    matches = (LINE.fullmatch(line) for line in text.splitlines())
    return [
        Line(match[1], match[2], dict(LABEL.findall(match[2])), float(match[3]), match[3])
        for match in matches
        if match and match[3] != "STRING"
    ]


def reading(line: Line) -> Reading:
    row = ROWS[line.name]
    alias = row.dcgm if row.dcgm and row.dcgm.name == line.name else row.dcgm1x
    assert alias is not None
    return Reading(row.name, line.value * alias.unit.factor, row.label_values)


def snapshot(sample: list[Line]) -> Snapshot:
    uuids = list(dict.fromkeys(row.labels.get("UUID") or row.labels["uuid"] for row in sample))
    first = sample[0].labels
    return Snapshot(
        node=first.get("Hostname") or first.get("hostname", ""),
        taken_at=0.0,
        interval_seconds=5.0,
        version="0",
        driver_version=first.get("DCGM_FI_DRIVER_VERSION", ""),
        cards=tuple(_card([row for row in sample if uuid in row.text], first) for uuid in uuids),
    )


def _card(sample: list[Line], first: dict[str, str]) -> Card:
    device = _device(sample)
    if "pod" not in first:
        return card(device)
    container = ContainerRef(first["namespace"], first["pod"], first["container"])
    claim = Claim(gpu=device.gpu.uuid, container=container)
    return card(device, tenants=[Tenant(container=container, claims=(claim,))])


def _device(sample: list[Line]) -> Device:
    labels = sample[0].labels
    places = list(dict.fromkeys(row.labels["GPU_I_ID"] for row in sample if "GPU_I_ID" in row.labels))
    gpu = Gpu(
        uuid=labels.get("UUID") or labels["uuid"],
        index=int(labels["gpu"]),
        model=labels.get("modelName", ""),
        pci_bus_id=labels.get("pci_bus_id", ""),
        mig_enabled=bool(places),
    )
    instances = tuple(_instance([row for row in sample if row.labels["GPU_I_ID"] == place]) for place in places)
    return Device(gpu=gpu, readings=_readings(sample), instances=instances)


def _instance(sample: list[Line]) -> Instance:
    place, profile = sample[0].labels["GPU_I_ID"], sample[0].labels["GPU_I_PROFILE"]
    mig = MigInstance(uuid=f"MIG-{place}", gpu_instance_id=int(place), compute_instance_id=0, profile=profile)
    return Instance(mig=mig, readings=_readings(sample))


def _readings(sample: list[Line]) -> tuple[Reading, ...]:
    return tuple(reading(row) for row in sample if row.name in ROWS)


def ours(sample: list[Line], options: dict[str, list[str]]) -> list[Line]:
    config: DcgmPageOptions = load(options, {}).of(DcgmPageOptions)
    return lines(render(dcgm.families(snapshot(sample), config), Format.TEXT).decode())


@pytest.mark.parametrize("name", SAME_GENERATION)
def test_rows_come_out_as_they_went_in(name: str) -> None:
    theirs = [row for row in lines((SAMPLES / f"{name}.prom").read_text()) if row.name in ROWS]
    assert len(theirs) > 5
    assert sorted(ours(theirs, SAME_GENERATION[name])) == sorted(theirs)


@pytest.mark.parametrize("name", SAME_GENERATION)
def test_help_and_type_are_those_of_dcgm_exporter(name: str) -> None:
    text = (SAMPLES / f"{name}.prom").read_text()
    theirs = [row for row in lines(text) if row.name in ROWS]
    comments = {line for line in text.splitlines() if line.startswith(("# HELP", "# TYPE")) and line.split()[2] in ROWS}
    config = load(SAME_GENERATION[name], {}).of(DcgmPageOptions)
    page = render(dcgm.families(snapshot(theirs), config), Format.TEXT).decode().splitlines()
    assert comments <= set(page)


@pytest.mark.parametrize("name", ["k8s_idle_l40s_helm", "k8s_idle_l4_gpu_operator", "vgpu_grid_a100_10c"])
def test_families_stand_in_the_order_of_dcgm_exporter(name: str) -> None:
    theirs = [row for row in lines((SAMPLES / f"{name}.prom").read_text()) if row.name in ROWS]
    assert list(dict.fromkeys(family.name for family in ours(theirs, {}))) == list(
        dict.fromkeys(family.name for family in theirs)
    )


def test_a_page_with_mig_has_rows_for_the_same_fields_of_instances_and_cards() -> None:
    text = (SAMPLES / "mig_a800_8gpu_mixed_full.prom").read_text()
    theirs = [row for row in lines(text) if row.name in ROWS]
    assert len(theirs) > 200
    node = snapshot(theirs)
    split, whole, *others = node.cards
    # The split card may report what the others do. Even then its instances show no more than theirs.
    split = replace(split, readings=(*whole.readings, *split.readings))
    page = dcgm.families(replace(node, cards=(split, whole, *others)), load({}, {}).of(DcgmPageOptions))

    def bare(line: Line) -> tuple[str, str, float]:
        # The power of one of theirs was read a moment later.
        value = 0.0 if line.name == "DCGM_FI_DEV_POWER_USAGE" else line.value
        return line.name, OLDER.sub("", line.text), value

    found = lines(render(page, Format.TEXT).decode())
    assert sorted(map(bare, found)) == sorted(map(bare, theirs))
    assert list(dict.fromkeys(family.name for family in found)) == list(dict.fromkeys(family.name for family in theirs))


def test_the_labels_of_a_claim_are_where_dcgm_exporter_has_them() -> None:
    first, second = lines((SAMPLES / "dra_gh200_k8s_docs.prom").read_text())
    labels = first.labels
    container = ContainerRef(labels["namespace"], labels["pod"], labels["container"], "uid")
    gpu = Gpu(
        uuid=labels["UUID"],
        index=int(labels["gpu"]),
        model=labels["modelName"],
        pci_bus_id=labels["pci_bus_id"],
    )
    claim = Claim(
        gpu=gpu.uuid,
        container=container,
        system="dra",
        resource=labels["dra_driver_name"],
        device_id=f"{labels['dra_pool_name']}/{labels['dra_device_name']}",
    )
    node = Snapshot(
        node=labels["Hostname"],
        taken_at=0.0,
        interval_seconds=5.0,
        version="0",
        cards=(
            card(
                Device(gpu=gpu, readings=(reading(first),)),
                tenants=[Tenant(container=container, claims=(claim,))],
            ),
        ),
        pods=(
            Pod(
                namespace=container.namespace,
                name=container.pod,
                uid="uid",
                containers=(PodContainer(name=container.container, uses=(ClaimUse("gpu"),)),),
                resource_claims={"gpu": labels["dra_claim_name"]},
            ),
        ),
    )
    assert lines(render(dcgm.families(node, load({}, {}).of(DcgmPageOptions)), Format.TEXT).decode()) == [first]
    assert second.labels["pod"] != labels["pod"]  # a claim of two pods: we name neither, or each for itself


def test_a_page_of_1_x_comes_out_as_it_went_in() -> None:
    theirs = lines((SAMPLES / "v1_textfile_gpu_monitoring_tools.prom").read_text())
    page = render(dcgm_1_x.families(snapshot(theirs), None), Format.TEXT).decode()
    # These were read and written again on their way to the page: `2.635e+06`.
    assert sorted(row[:4] for row in lines(page)) == sorted(row[:4] for row in theirs)
