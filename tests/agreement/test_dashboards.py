"""Dashboards say what podgpu says, of a world with a dead agent, a lost card, unknown use and a chosen namespace.

The panels' queries and all rules are evaluated by promtool over the pages that agents served, minute by minute, and
compared with what `insight` concluded of the last of them.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.insight import conclude, reconclude
from podgpu.insight.tenants import Placement, cards_of, held_share, idle_seconds, placements
from podgpu.model import SEES_ALL, Booking, Card, Cluster, ClusterNode, Fault, Gpu, Snapshot, Tenant
from podgpu.views import exposition, native
from podgpu.views.exposition import Format
from tests.agreement.series import samples
from tests.cluster.nodes import card, tenant
from tests.deploy.watching.rulebook import FILES
from tests.deploy.watching.test_dashboards import PANELS, chosen
from tests.deploy.watching.test_rules import promtool
from tests.tree import SETTINGS

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")

MINUTES, DIES, LOST_AT = 90, 60, 45
ABLE = replace(SEES_ALL, knows_owners=True, counts_busy=True)
LAB = {"$namespace": "lab"}
TIME = {
    "$__range_ms": "3600000",
    "$__range_s": "3600",
    "$__range": "1h",
    "$__rate_interval": "5m",
    "$__interval_ms": "60000",
    "$__interval": "1m",
}
Sample = tuple[Mapping[str, str], float | None]


def _gpu(number: int, *tenants: Tenant, node: str = "alive", **facts: object) -> Card:
    gpu = Gpu(uuid=f"GPU-{node}-{number}", index=number, model="NVIDIA H200", multiprocessors=132)
    return card("", *tenants, gpu=gpu, ability=ABLE, **facts)


def _tenant(pod: str, minute: int, share: float = 1.0, *, use: float | None = 0.0) -> Tenant:
    """`use` is None for one whose processes are not seen; one without any use certainly has no process."""
    made = tenant(pod, share, idle=None if use is None else not use, held_since=60.0)
    held_us = round(minute * 60e6 * share)
    booking = Booking(
        method="measured",
        allocated_ratio=share,
        sm_ratio=use,
        processes=None if use is None else int(use > 0),
        allocated_us=held_us,
        busy_us=round(minute * 60e6 * (use or 0.0)),
        unmeasured_us=held_us if use is None else 0,
        last_active_at=minute * 60.0 if use else None,
    )
    return replace(made, booking=booking)


def _alive(minute: int) -> Snapshot:
    seen = min(minute, LOST_AT)  # of the lost card the counters stand still
    lost = _gpu(2, _tenant("ml/held", seen, use=0.5))
    if minute > LOST_AT:
        silent = replace(lost.tenants[0], idle=None, booking=replace(lost.tenants[0].booking, allocated_ratio=None))
        lost = replace(lost, fault=Fault(reason="lost"), readings=(), tenants=(silent,))
    return _concluded(
        "alive",
        minute,
        _gpu(0, _tenant("ml/train", minute, use=0.5)),
        _gpu(1, _tenant("lab/idle", minute)),
        lost,
        _gpu(3, _tenant("ml/left", minute, 0.5, use=0.25), _tenant("lab/right", minute, 0.5, use=0.25)),
        _gpu(4, _tenant("lab/unseen", minute, use=None)),
        _gpu(5),
    )


def _dead(minute: int) -> Snapshot:
    return _concluded("dead", minute, _gpu(0, _tenant("ops/gone", minute, use=0.5), node="dead"), _gpu(1, node="dead"))


def _concluded(name: str, minute: int, *cards: Card) -> Snapshot:
    snapshot = Snapshot(node=name, taken_at=minute * 60.0, interval_seconds=5.0, version="1.0", cards=cards)
    return conclude(snapshot, SETTINGS, has_books=False)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """What podgpu concludes of the last minute."""
    nodes = (
        ClusterNode(name="alive", state="fresh", origin="agent", snapshot=_alive(MINUTES)),
        ClusterNode(name="dead", state="stale", reason="timeout", origin="agent", snapshot=_dead(DIES)),
    )
    return reconclude(Cluster(taken_at=MINUTES * 60.0, version="1.0", nodes=nodes), SETTINGS)


@pytest.fixture(scope="module")
def told() -> list[dict[str, str]]:
    """The pages of both agents over time, as promtool reads series."""
    values: dict[str, list[str]] = {}
    for minute in range(MINUTES + 1):
        living = [_alive(minute)] if minute > DIES else [_alive(minute), _dead(minute)]
        for snapshot in living:
            page = exposition.render(native.families(snapshot, {}), Format.TEXT).decode()
            for name, labels, value in samples(page):
                inside = ",".join(f'{label}="{text}"' for label, text in {**labels, "instance": snapshot.node}.items())
                past = values.setdefault(f"{name}{{{inside}}}", [])
                past += ["_"] * (minute - len(past))
                past.append(repr(value))
    return [
        {"series": series, "values": " ".join(past if len(past) > MINUTES else [*past, "stale"])}
        for series, past in values.items()
    ]


@pytest.fixture(scope="module")
def here(cluster: Cluster) -> list[Placement]:
    """Who is on the cards of the node that is heard."""
    return [place for place in placements(cards_of(cluster)) if not place.on.is_dark]


def _asked(board: str, title: str, column: str = "", kind: str = "", **choices: str) -> str:
    """The query of a panel, or of a column of it. Where two panels have the title, `kind` tells which."""
    named = [panel for each, panel in PANELS if (each.uid, panel.title) == (board, title)]
    (panel,) = [panel for panel in named if not kind or panel.kind == kind]
    (query,) = [query for query in panel.queries if not column or query.legend == column]
    # The time goes up to the last minute and began an hour before.
    text = query.promql
    for name, value in {**TIME, **choices}.items():
        text = text.replace(name, value)
    return chosen(text)


def _by_pod(places: Iterable[Placement], values: Mapping[str, float]) -> Iterator[Sample]:
    for place in places:
        ref = place.tenant.container
        if ref.pod in values:
            yield {"namespace": ref.namespace, "pod": ref.pod}, values[ref.pod]


def _check(
    told: list[dict[str, str]], folder: Path, asked: Iterable[tuple[str, Sequence[Sample]]], to: float = 2**-14
) -> None:
    """`to` is a power of two, so that rounding adds no noise."""
    tests = [
        {
            "expr": f"round({expression}, {to!r})",
            "eval_time": f"{MINUTES}m",
            "exp_samples": [
                {"labels": "{" + ",".join(f'{name}="{text}"' for name, text in labels.items()) + "}", "value": value}
                for labels, value in expected
            ],
        }
        for expression, expected in asked
    ]
    file = folder / "world.json"
    test = {"interval": "1m", "input_series": told, "promql_expr_test": tests}
    file.write_text(json.dumps({"rule_files": list(map(str, FILES)), "evaluation_interval": "1m", "tests": [test]}))
    promtool("test", "rules", str(file))


def test_sums_and_what_is_missing_from_them(told: list[dict[str, str]], cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.insight
    sums, dark = cluster.insight.sums, cluster.insight.dark
    assert (sums.gpus, sums.lost_gpus, sums.dark_gpus) == (8, 1, 2)
    assert dark
    for board in ("podgpu-cluster", "podgpu-health"):
        _check(
            told,
            tmp_path,
            [
                (_asked(board, "GPUs", kind="stat"), [({}, sums.gpus)]),
                (_asked(board, "Down"), [({}, sums.lost_gpus)]),
                (_asked(board, "Not seen"), [({}, sums.dark_gpus)]),
            ],
        )
    _check(
        told,
        tmp_path,
        [
            (_asked("podgpu-agent", "Agents"), [({}, len(cluster.nodes))]),
            (_asked("podgpu-agent", "Not seen"), [({}, sum(node.state != "fresh" for node in cluster.nodes))]),
            (
                _asked("podgpu-cluster", "Nodes", "Not seen"),
                [({"node": "alive"}, 0), ({"node": "dead"}, sums.dark_gpus)],
            ),
        ],
    )


def test_who_holds_what_and_what_he_does_with_it(
    told: list[dict[str, str]], here: list[Placement], tmp_path: Path
) -> None:
    """The holder of the lost card is there, and nothing is made up about its use or that of the unseen."""
    shares = {place.tenant.container.pod: float(held_share(place.tenant, place.on.card) or 0) for place in here}
    busy = {
        place.tenant.container.pod: place.tenant.use.ratio
        for place in here
        if place.tenant.use and place.tenant.use.ratio is not None
    }
    states = [
        ({**labels, "state": place.tenant.holding.state}, 1.0)
        for place in here
        if place.tenant.holding
        for labels, _ in _by_pod([place], shares)
    ]
    assert shares["held"] == 1.0
    assert busy.keys() == {"train", "idle", "left", "right"}
    _check(
        told,
        tmp_path,
        [
            (_asked("podgpu-namespace", "Pods", "GPUs held"), list(_by_pod(here, shares))),
            (_asked("podgpu-namespace", "Pods", "GPUs busy"), list(_by_pod(here, busy))),
            (_asked("podgpu-namespace", "States"), states),
            (_asked("podgpu-workload", "Allocated", **{"$pod": "held"}), [({}, shares["held"])]),
            (_asked("podgpu-workload", "Busy", **{"$pod": "held"}), []),
            (_asked("podgpu-workload", "Power", kind="stat", **{"$pod": "held"}), []),
        ],
    )


def test_who_is_idle_and_since_when(told: list[dict[str, str]], here: list[Placement], tmp_path: Path) -> None:
    idle = {
        place.tenant.container.pod: seconds
        for place in here
        if (seconds := idle_seconds(place.tenant.holding, MINUTES * 60.0)) is not None
    }
    assert idle.keys() == {"idle"}
    where = {"container": "main", "node": "alive", "gpu": "1"}
    _check(
        told,
        tmp_path,
        [
            (
                _asked("podgpu-cluster", "Held and idle", "Idle for"),
                [({**labels, **where}, value) for labels, value in _by_pod(here, idle)],
            ),
            (
                _asked("podgpu-cluster", "Held and idle", "Share"),
                [({**labels, **where}, 1.0) for labels, _ in _by_pod(here, idle)],
            ),
            (_asked("podgpu-workload", "Idle for", **{"$pod": "idle"}), [({}, idle["idle"])]),
        ],
    )


def test_sharing_is_counted_before_a_namespace_is_chosen(
    told: list[dict[str, str]], here: list[Placement], tmp_path: Path
) -> None:
    shared = {
        place.on.card.gpu.uuid
        for place in here
        if place.tenant.container.namespace == "lab" and len(place.on.card.tenants) > 1
    }
    assert len(shared) == 1
    _check(
        told,
        tmp_path,
        [
            (_asked("podgpu-sharing", "Shared", **LAB), [({}, len(shared))]),
            (_asked("podgpu-sharing", "Containers", kind="stat", **LAB), [({}, 1)]),
        ],
    )


def test_what_nobody_knows_is_no_waste(told: list[dict[str, str]], here: list[Placement], tmp_path: Path) -> None:
    """Over an hour. Who is unknown held a card for all of it."""
    (unknown,) = [
        place.tenant.container.pod
        for place in here
        if place.tenant.holding and place.tenant.holding.state == "unknown" and place.on.card.fault is None
    ]
    wasted = {"idle": 1.0, "right": 0.25, unknown: 0.0}
    query = _asked("podgpu-bills", "Most wasted", "Hours wasted", **LAB)
    _check(told, tmp_path, [(query, list(_by_pod(here, wasted)))])


def test_a_lost_card_is_neither_free_nor_covered(told: list[dict[str, str]], tmp_path: Path) -> None:
    """Of the last hour it was read for a quarter, and the cards of the dead agent for a half."""
    alive = {"$node": "alive"}
    asked: list[tuple[str, Sequence[Sample]]] = [
        (_asked("podgpu-bills", "Coverage by node", "Read"), [({"node": "alive"}, 0.875), ({"node": "dead"}, 0.5)]),
        (_asked("podgpu-bills", "Free", **alive), [({}, 1.0)]),
    ]
    _check(told, tmp_path, asked, to=1 / 16)
