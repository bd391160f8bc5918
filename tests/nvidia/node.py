"""The node's cards, and what an agent and the shipped alerts say of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.agent.rig import RunningAgent
from tests.e2e.prometheus import Job, Prometheus, prometheus
from tests.fakenvml.fake_node import FakeGpu, FakeMig, FakeNode, h200
from tests.nvidia.tenants import Shares

RULES = sorted((Path(__file__).parents[2] / "deploy/rules").glob("*.yaml"))


def cards(count: int, mig: int | None = None) -> FakeNode:
    """H200s. The one of that number is divided into an instance of three slices, one of two, and two of one."""
    node = FakeNode([h200(number) for number in range(count)])
    if mig is not None:
        _cut(node.gpus[mig])
    return node


def _cut(gpu: FakeGpu) -> None:
    """Slices and multiprocessors are those of an H200."""
    shapes = [(1, 0, "3g.71gb", 4, 3, 60), (5, 4, "2g.35gb", 2, 2, 32), (9, 6, "1g.18gb", 1, 1, 16)]
    gpu.mig_enabled = True
    gpu.migs = [
        FakeMig(
            f"MIG-{index:08x}-7c44-5d55-9e66-{gpu.uuid[-12:]}",
            index,
            instance,
            profile=profile,
            memory_total=150_754_820_096 * slices // 8,
            multiprocessors=multiprocessors,
            gpu_slices=slices,
            compute_slices=compute,
            values={"placement": start},
        )
        for index, (instance, start, profile, slices, compute, multiprocessors) in enumerate(shapes)
    ]


def shares(snapshot: dict[str, Any]) -> Shares:
    """What an agent says each pod holds; nothing of a pod that only looks at a card."""
    found: Shares = {}
    for card in snapshot["cards"]:
        for tenant in card["tenants"]:
            place = tenant.get("mig") or card["gpu"]["uuid"]
            held = [claim.get("share") for claim in tenant.get("claims", ())]
            if held:
                found.setdefault(tenant["container"]["pod"], {})[place] = sum(held)
    return found


@contextmanager
def alerts(agent: RunningAgent, folder: Path) -> Iterator[Prometheus]:
    folder.mkdir(parents=True, exist_ok=True)
    with prometheus([Job("podgpu", f"{agent.url}/metrics")], folder, RULES) as store:
        yield store


def would_fire(store: Prometheus) -> set[str]:
    """The shipped alerts whose condition holds at this moment, however long it would have to."""
    groups = (group for path in RULES for group in yaml.safe_load(path.read_text())["groups"])
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    return {rule["alert"] for rule in rules if store.query(rule["expr"])}
