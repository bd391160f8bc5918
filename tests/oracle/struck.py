"""`python -m tests.oracle.struck`: what pods hold whose annotations and labels were removed before the agent's start.

One pod of a case at a time loses all of them. The table is in docs/sharing.md.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podgpu import sharing
from podgpu.model import Claim, Pod
from podgpu.sharing.inventory import Inventory
from tests.oracle.case import Case
from tests.oracle.inventory import inventory
from tests.oracle.play import CASES, cases, shown

MOST_CASES = 6  # of a file
FILES: Mapping[str, tuple[str, ...]] = {
    "HAMi": ("hami-2.5.3", "hami-2.6.1", "hami-2.9.0", "hami-2.10", "hami-init"),
    "HAMi in MIG mode": ("hami-2.10-mig",),
    "Volcano vGPU": ("volcano-60",),
    "Volcano `gpu-memory`, `gpu-number`": ("volcano-share",),
    "gpushare": ("gpushare",),
    "gpu-manager": ("gpu-manager",),
    "Koordinator": ("koordinator",),
    "KAI": ("kai", "kai-nvfractions"),
}
HEAD = (
    "| system | pods | GPUs held | without, running | less | unknown size | none runs | unknown card | wrong card |",
    "|---|---|---|---|---|---|---|---|---|",
)


class Struck(Struct, frozen=True):
    """A pod that lost its annotations. GPUs that it held before, that it holds while its processes run, and if none do.

    `unsized` is whether the size of one is not known, `nowhere` whether a card is not known if nothing runs, and
    `elsewhere` whether a card is claimed on which it is not.
    """

    fair: float
    running: float
    bare: float
    unsized: bool
    nowhere: bool
    elsewhere: bool

    @property
    def is_less(self) -> bool:
        """Whether it holds less than before, and nothing says so."""
        return self.running < self.fair - 1e-6 and not self.unsized


async def struck(path: Path) -> list[Struck]:
    return [found for case in islice(cases(path), MOST_CASES) for found in _struck_pods(case, await inventory(case))]


def _struck_pods(case: Case, node: Inventory) -> Iterator[Struck]:
    settled, seen = shown(case, node)
    fair = sharing.claims(node, settled, seen=seen)
    for pod in node.pods:
        own = _of(pod, fair)
        if own and any(claim.source == "annotation" for claim in own):
            yield _struck(case, pod, _without_notes(node, pod), _held(own))


def _struck(case: Case, pod: Pod, node: Inventory, fair: float) -> Struck:
    settled, seen = shown(case, node)
    running, bare = sharing.claims(node, settled, seen=seen), sharing.claims(node)
    cards = {(right.gpu, right.mig) for right in case.truth or () if (right.namespace, right.pod) == _name(pod)}
    own = _of(pod, running)
    return Struck(
        fair=fair,
        running=_held(own),
        bare=_held(_of(pod, bare)),
        unsized=any(claim.share <= 0 for claim in own),
        nowhere=any(_name(pod) == held.container.names[:2] for held in sharing.unplaced(node, bare)),
        elsewhere=any((claim.gpu, claim.mig) not in cards for claim in (*own, *_of(pod, bare))),
    )


def _without_notes(node: Inventory, pod: Pod) -> Inventory:
    bare = replace(pod, annotations={}, labels={})
    return Inventory(
        node.devices,
        node.allocations,
        node.allocatable,
        [bare if other is pod else other for other in node.pods],
        namespaces=node.namespaces,
    )


def _name(pod: Pod) -> tuple[str, str]:
    return pod.namespace, pod.name


def _of(pod: Pod, claims: Iterable[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.container.names[:2] == _name(pod)]


def _held(claims: Iterable[Claim]) -> float:
    return sum(claim.share for claim in claims)


def row(system: str, found: list[Struck]) -> str:
    fair, running, bare = (f"{sum(getattr(pod, name) for pod in found):.1f}" for name in ("fair", "running", "bare"))
    less, unsized, nowhere, elsewhere = (
        sum(getattr(pod, name) for pod in found) for name in ("is_less", "unsized", "nowhere", "elsewhere")
    )
    return f"| {system} | {len(found)} | {fair} | {running} | {less} | {unsized} | {bare} | {nowhere} | {elsewhere} |"


async def played() -> dict[str, list[Struck]]:
    return {
        system: [found for name in names for found in await struck(CASES / f"{name}.jsonl.xz")]
        for system, names in FILES.items()
    }


def table(found: Mapping[str, list[Struck]]) -> str:
    return "\n".join((*HEAD, *(row(system, pods) for system, pods in found.items())))


if __name__ == "__main__":
    print(table(asyncio.run(played())))
