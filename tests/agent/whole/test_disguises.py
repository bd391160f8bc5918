"""The bill beside a tenant who passes for somebody else, or strikes out what he was given."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.model import Pod, PodContainer
from podgpu.sharing import kai, koordinator
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from tests.agent.test_attribution import Kubelet
from tests.agent.whole.test_two_tenants import (
    CHEAT,
    CYCLES,
    GPU,
    HONEST,
    MPS,
    OTHER,
    RESERVATION,
    SECONDS,
    SLEEP,
    Node,
    bill,
    billed,
    fraction,
    joules,
    listed,
    node,
    pod,
    reservation,
)

__all__ = ["node"]  # the fixture


async def test_who_looks_like_a_reservation_pod_still_holds_his_card(node: Node) -> None:
    """His name, his container, his labels and his notes are KAI's, and a pod of his own is in the group."""
    helper = replace(
        Pod(namespace="ns", name="helper", uid="h", phase="Running", containers=(PodContainer(name="main"),)),
        labels={kai.GROUP: "group"},
        annotations={kai.FRACTION: "0.001"},
    )
    disguised = replace(
        pod(CHEAT, RESERVATION),
        labels={kai.GROUP: "group"},
        annotations={kai.RESERVED_CARD: f"{GPU}::1"},
        containers=(replace(pod(CHEAT, "").containers[0], name="resource-reservation"),),
    )
    honest = listed(node.start(node.pod(HONEST)), 0.1, kinds=("compute", "mps"))
    cards = []
    for cheat, program, others in ((pod(CHEAT, "cheat"), SLEEP, ()), (disguised, MPS, (helper,))):
        cheating = listed(node.start(node.pod(CHEAT), program), 0.8)
        kubelet = Kubelet(honest=f"{GPU}::0", **{cheat.name: f"{GPU}::1"})
        kubelet.places[cheat.name] = ("ns", cheat.containers[0].name)
        cards.append(
            await billed(
                honest,
                cheating,
                busy=0.9,
                kubelet=kubelet,
                pods=[pod(HONEST, "honest"), cheat, *others],
                meeting=frozenset({honest.pid, cheating.pid}),
            )
        )
    fair, forged = cards
    assert joules(forged, "honest") == pytest.approx(joules(fair, "honest"), rel=0.01)
    assert joules(forged, RESERVATION) == pytest.approx(joules(fair, "cheat"), rel=0.01)
    assert joules(fair, "cheat") > 1000
    assert bill(forged, RESERVATION).memory_bytes == 10 << 30
    assert forged.excused == ()


async def test_who_takes_a_whole_card_as_a_reservation_pod_holds_it(node: Node) -> None:
    _, disguised = reservation("ns")
    owner, helper = replace(disguised, uid=CHEAT), fraction(HONEST, "helper", {kai.FRACTION: "0.001"})
    card = await billed(busy=0.0, kubelet=Kubelet(**{RESERVATION: GPU}), pods=[owner, helper])
    assert bill(card, RESERVATION).allocated_us == pytest.approx(CYCLES * SECONDS * 1e6, rel=0.01)


@pytest.mark.parametrize("namespace", kai.SCHEDULERS)
async def test_who_calls_his_namespace_as_kais_where_there_is_no_kai_holds_his_card(node: Node, namespace: str) -> None:
    kubelet, disguised = reservation(namespace)
    helper = replace(fraction(HONEST, "helper", {kai.FRACTION: "0.001"}), scheduler="")
    card = await billed(busy=0.0, kubelet=kubelet, pods=[disguised, helper])
    assert bill(card, RESERVATION).allocated_us == pytest.approx(CYCLES * SECONDS * 1e6, rel=0.01)
    assert card.excused == ()


async def test_a_real_reservation_pod_is_excused_and_listed_with_its_proof(node: Node) -> None:
    kubelet, holder = reservation()
    card = await billed(busy=0.0, kubelet=kubelet, pods=[holder, fraction(HONEST, "honest", {kai.FRACTION: "0.5"})])
    assert bill(card, RESERVATION).allocated_us == 0
    (excused,) = card.excused
    assert excused.container and excused.container.pod == RESERVATION
    assert excused.proof == (
        "its namespace kai-resource-reservation is the sharing system's own, "
        "and other pods here name kai-scheduler as their scheduler"
    )


def shared_by_notes(uid: str, name: str, note: str | None, limits: dict[str, str], key: str) -> Pod:
    plain = pod(uid, name)
    notes = {} if note is None else {key: note}
    return replace(plain, containers=(replace(plain.containers[0], limits=limits),), annotations=notes)


HALF = {
    DEVICES_ALLOCATED: (f"{GPU},NVIDIA,40960,0:;", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40960"}),
    koordinator.ANNOTATION: (
        f'{{"gpu":[{{"minor":0,"id":"{GPU}","resources":{{"koordinator.sh/gpu-core":"50"}}}}]}}',
        {"koordinator.sh/gpu-core": "50"},
    ),
}


@pytest.mark.parametrize("key", list(HALF))
async def test_who_strikes_his_note_out_before_the_agent_starts_still_holds_his_share(node: Node, key: str) -> None:
    """There is another card that he could have, and use cannot be measured."""
    note, limits = HALF[key]
    ids = {"honest": f"{GPU}-0", "cheat": f"{GPU}-1"} if key == DEVICES_ALLOCATED else {}
    processes = [replace(listed(node.start(node.pod(uid)), 0.0), sm_busy_us=None) for uid in (HONEST, CHEAT)]
    cards = [
        await billed(
            *processes,
            busy=0.9,
            kubelet=Kubelet(**ids),
            pods=[
                shared_by_notes(HONEST, "honest", note, limits, key),
                shared_by_notes(CHEAT, "cheat", written, limits, key),
            ],
            others=[OTHER],
        )
        for written in (note, None)
    ]
    fair, forged = cards
    for name in ("honest", "cheat"):
        assert joules(forged, name) == pytest.approx(joules(fair, name), rel=0.01)
        assert bill(forged, name).allocated_us == pytest.approx(bill(fair, name).allocated_us, rel=0.01)
    assert joules(fair, "cheat") > 1000


@pytest.mark.parametrize("notes", [{kai.FRACTION: "0.01"}, {}])
async def test_who_writes_a_smaller_fraction_and_waits_for_a_restart_still_pays(
    node: Node, notes: dict[str, str], tmp_path: Path
) -> None:
    """The first agent read what he was given; the second one begins with what it finds."""
    processes = [replace(listed(node.start(node.pod(uid)), 0.0), sm_busy_us=None) for uid in (HONEST, CHEAT)]
    kubelet, holder = reservation()
    half = {kai.FRACTION: "0.5"}
    honest, cheat = fraction(HONEST, "honest", half), fraction(CHEAT, "cheat", half)
    fair = await billed(*processes, busy=0.9, kubelet=kubelet, pods=[holder, honest, cheat], state=tmp_path)
    struck = [holder, honest, fraction(CHEAT, "cheat", notes)]
    forged = await billed(*processes, busy=0.9, kubelet=kubelet, pods=struck, state=tmp_path)
    for name in ("honest", "cheat"):
        assert joules(forged, name) == pytest.approx(joules(fair, name), rel=0.01)
        assert bill(forged, name).allocated_us == pytest.approx(bill(fair, name).allocated_us, rel=0.01)
    assert joules(fair, "cheat") > 1000
