"""What the tests of dialects share: nodes of scenarios, nodes made at random, and what every page must be."""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from math import inf, isfinite, nan
from pathlib import Path

from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu import catalog
from podgpu.agent.books import NodeBooks
from podgpu.agent.join import Join
from podgpu.ledger.book import book
from podgpu.ledger.cycle import Interval
from podgpu.model import (
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Pod,
    Process,
    Reading,
    Rest,
    Snapshot,
    Tenant,
    VirtualGpu,
)
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family, Labels, count
from tests.fakekubelet.kubelet import kubelet_root
from tests.scenarios.play import play
from tests.scenarios.script import NodeScript, read
from tests.tree import card
from tests.views.test_exposition import PARSERS

PROMTOOL = shutil.which("promtool")
SCENARIOS = Path(__file__).parents[2] / "scenarios"

NAMES = st.text(st.characters(), max_size=6)
MAYBE = st.none() | st.integers(0, 2**50)
RATIOS = st.none() | st.floats(0, 1)
# Two of them add up to a number still: no unit of the catalog lets a larger one in.
NUMBERS = st.floats(-1e300, 1e300) | st.sampled_from([nan, inf, -inf])
# Strategies are made once: one that is made anew for each example costs more than the example itself.
READING = {
    row.name: st.builds(Reading, st.just(row.name), NUMBERS, st.tuples(*(NAMES for _ in row.label_names)))
    for row in catalog.device_rows()
}
READINGS = st.lists(st.sampled_from(list(READING)).flatmap(READING.__getitem__), max_size=6).map(tuple)
# Few names, so that pods meet on cards, and some are made again under their old name.
REFS = st.builds(ContainerRef, st.just("a"), st.sampled_from("xy"), st.just("c"), st.sampled_from("12")) | st.builds(
    ContainerRef, NAMES, NAMES, NAMES, NAMES
)
PROCESSES = st.lists(
    st.builds(
        Process,
        pid=st.integers(1, 5),
        kinds=st.sampled_from([("compute",), ()]),
        memory_bytes=MAYBE,
        holder=st.none()
        | st.builds(Holder, pid=st.just(1), kind=st.sampled_from(["pod", "host"]), container=st.none() | REFS),
    ),
    max_size=2,
).map(tuple)
CLAIMS = st.builds(
    Claim,
    gpu=NAMES,
    container=REFS,
    share=st.floats(0, 1),
    memory_limit_bytes=MAYBE,
    system=st.sampled_from(["hami", "dra", "mig"]),
    index=st.none() | st.integers(0, 2),
)
BOOKINGS = st.builds(Booking, memory_bytes=MAYBE, sm_ratio=RATIOS, power_watts=RATIOS)
VGPUS = st.builds(
    VirtualGpu,
    pod_uid=st.just("1"),
    container=st.just("c"),
    gpu=NAMES,
    index=st.integers(0, 2),
    memory_used_bytes=MAYBE,
    context_bytes=MAYBE,
    sm_ratio=RATIOS,
    last_kernel_at=RATIOS,
)
DEVICES = st.builds(
    Device,
    gpu=st.builds(Gpu, uuid=NAMES | st.sampled_from(["GPU-1", "GPU-2"]), index=st.integers(0, 2), model=NAMES),
    fault=st.none() | st.builds(Fault, reason=NAMES, call=NAMES),
    readings=READINGS,
    instances=st.lists(
        st.builds(
            Instance,
            mig=st.builds(
                MigInstance,
                uuid=NAMES,
                gpu_instance_id=st.integers(0, 2),
                compute_instance_id=st.just(0),
                profile=NAMES,
            ),
            readings=READINGS,
        ),
        max_size=2,
    ).map(tuple),
)


TENANTS = st.lists(
    st.builds(
        Tenant,
        container=REFS,
        claims=st.lists(CLAIMS, max_size=2).map(tuple),
        processes=PROCESSES,
        booking=BOOKINGS,
        idle=st.none() | st.booleans(),
        vgpu=st.none() | VGPUS,
    ),
    max_size=4,
)
ENDED = st.lists(st.builds(Tenant, container=REFS, booking=BOOKINGS), max_size=1)
REST = st.lists(st.builds(Rest, reason=NAMES, processes=PROCESSES), max_size=1)


@st.composite
def cards(draw: st.DrawFn) -> Card:
    device = draw(DEVICES)
    places = st.sampled_from(["", *(instance.mig.uuid for instance in device.instances)])
    return card(
        device,
        tenants=[_at_home(tenant, device.gpu, draw(places)) for tenant in draw(TENANTS)],
        ended=draw(ENDED),
        rest=draw(REST),
    )


def _at_home(tenant: Tenant, gpu: Gpu, mig: str) -> Tenant:
    claims = (replace(claim, gpu=gpu.uuid, mig=mig, container=tenant.container) for claim in tenant.claims)
    return replace(tenant, mig=mig, claims=tuple(claims))


NODES = st.builds(
    Snapshot,
    node=NAMES,
    taken_at=st.just(1.0),
    interval_seconds=st.just(5.0),
    version=NAMES,
    cards=st.lists(cards(), max_size=3).map(tuple),
    pods=st.lists(st.builds(Pod, namespace=NAMES, name=NAMES, uid=NAMES), max_size=2).map(tuple),
)


def joined(
    device: Device,
    claims: Iterable[Claim] = (),
    holders: Iterable[Holder] = (),
    *,
    vgpus: Iterable[VirtualGpu] = (),
    knows_owners: bool = True,
) -> Card:
    """A card as the agent books and joins it in its first cycle. `claims` may be those of other cards too."""
    able = replace(device, ability=replace(device.ability, knows_owners=knows_owners))
    own = [claim for claim in claims if claim.gpu == device.gpu.uuid]
    accounts = NodeBooks()
    if device.fault is None:
        first = Interval(elapsed_us=0)
        sheet = book(able, first, own, {holder.pid: holder for holder in holders})
        accounts.post([(sheet, first)], 0.0, 0.0)
    return Join(vgpus, {}, {}).card(able, accounts.cards.get(device.gpu.uuid), own)


def rebooked(shown: Card, **changes: object) -> Card:
    """The card with these numbers booked to each of its tenants."""
    tenants = (replace(tenant, booking=replace(tenant.booking, **changes)) for tenant in shown.tenants)
    return replace(shown, tenants=tuple(tenants))


def script(name: str) -> NodeScript:
    return read(SCENARIOS / name / "node.yaml")


async def played(node: NodeScript, folder: Path) -> Snapshot:
    with kubelet_root() as kubelet:
        return await play(node, folder, kubelet)


def text(families: Sequence[Family]) -> str:
    return render(families, Format.TEXT).decode()


def values(families: Sequence[Family], name: str) -> dict[str, float]:
    """The samples of a family by their labels, as they are printed. Empty if it is not there."""
    samples = next((family.samples for family in families if family.name == name), {})
    return {block(*key): value for key, value in samples.items()}


def block(*labels: Labels) -> str:
    return f"{{{','.join(labels)}}}"


def check_series(families: Sequence[Family]) -> None:
    """No series twice and none without a number, in both formats."""
    for form, parse in PARSERS.items():
        samples = [sample for family in parse(render(families, form).decode()) for sample in family.samples]
        series = {(sample.name, frozenset(sample.labels.items())) for sample in samples}
        assert len(series) == len(samples) == count(families)
        assert all(isfinite(sample.value) for sample in samples)


def complaints(families: Sequence[Family]) -> set[str]:
    """The names that promtool complains about, where it is installed."""
    if PROMTOOL is None:
        return set()
    page = render(families, Format.TEXT)
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode in (0, 3), said  # 3: it can be read, and there are names to complain of
    return {line.split()[0] for line in said.decode().splitlines()}
