"""What the tests of dialects share: nodes of scenarios, and what every page must be."""

import shutil
import subprocess
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.model import Booking, Claim, ContainerRef, Snapshot, VirtualGpu
from podgpu.views.exposition import Format, render
from podgpu.views.family import Family, count
from tests.fakekubelet.kubelet import kubelet_root
from tests.scenarios.play import play
from tests.scenarios.script import NodeScript, read
from tests.views.test_exposition import PARSERS
from tests.views.test_native import MAYBE, RATIOS, SNAPSHOTS

PROMTOOL = shutil.which("promtool")
SCENARIOS = Path(__file__).parents[2] / "scenarios"

# Few names, so that pods meet on cards, and some are made again under their old name.
REFS = st.builds(ContainerRef, st.just("a"), st.sampled_from("xy"), st.just("c"), st.sampled_from("12"))
CARDS = st.sampled_from(["GPU-1", "GPU-2"])
SYSTEMS = st.sampled_from(["hami", "mig"])
NODES = st.builds(
    lambda snapshot, claims, bookings, vgpus: replace(
        snapshot,
        claims=(*snapshot.claims, *claims),
        bookings=(*snapshot.bookings, *bookings),
        vgpus=tuple(vgpus),
    ),
    SNAPSHOTS,
    st.lists(
        st.builds(Claim, gpu=CARDS, container=REFS, share=RATIOS.filter(bool), system=SYSTEMS), max_size=4
    ),
    st.lists(
        st.builds(
            Booking,
            gpu=CARDS,
            container=REFS,
            processes=st.integers(0, 2),
            memory_bytes=MAYBE,
            sm_ratio=RATIOS,
            ended=st.booleans(),
        ),
        max_size=4,
    ),
    st.lists(
        st.builds(
            VirtualGpu,
            pod_uid=st.sampled_from("12"),
            container=st.just("c"),
            gpu=CARDS,
            index=st.integers(0, 2),
            memory_used_bytes=MAYBE,
            context_bytes=MAYBE,
            sm_ratio=RATIOS,
            last_kernel_at=RATIOS,
        ),
        max_size=4,
    ),
)


def script(name: str) -> NodeScript:
    return read(SCENARIOS / name / "node.yaml")


async def played(node: NodeScript, folder: Path) -> Snapshot:
    with kubelet_root() as kubelet:
        return await play(node, folder, kubelet)


def text(families: Sequence[Family]) -> str:
    return render(families, Format.TEXT).decode()


def values(families: Sequence[Family], name: str) -> dict[str, float]:
    """The samples of a family by their labels, empty if it is not there."""
    return next((family.samples for family in families if family.name == name), {})


def check_series(families: Sequence[Family]) -> None:
    """No series twice and none without a number, in both formats."""
    for form, parse in PARSERS.items():
        samples = [one for family in parse(render(families, form).decode()) for one in family.samples]
        series = {(one.name, frozenset(one.labels.items())) for one in samples}
        assert len(series) == len(samples) == count(families)
        assert all(isfinite(one.value) for one in samples)


def complaints(families: Sequence[Family]) -> set[str]:
    """The names that promtool finds fault with, where it is installed."""
    if PROMTOOL is None:
        return set()
    page = render(families, Format.TEXT)
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode in (0, 3), said  # 3: it can be read, and there are names to complain of
    return {line.split()[0] for line in said.decode().splitlines()}
