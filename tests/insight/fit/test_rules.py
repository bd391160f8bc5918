from array import array

import pytest
from msgspec.structs import replace

from podgpu.cluster.fit.claims import system_of, write_part
from podgpu.insight.fit.statement import FitPeriodFacts, fit_statement
from podgpu.model.fit import (
    INSTANCE,
    PORTION,
    TIME_SLICE,
    UNSEEN,
    WHOLE,
    CardType,
    FitAdvice,
    HeldPart,
    UseSeries,
    WantedPart,
    WorkloadName,
    WorkloadUse,
)
from podgpu.model.insight import Prices

GIB = 1 << 30
MINUTES = 2880
H200 = CardType(model="NVIDIA H200", memory_bytes=141 * GIB)
WHOLE_CARD = HeldPart(kind=WHOLE, ratio=1.0)


def used(memory: float, busy: float, **changes: object) -> WorkloadUse:
    """Two days of a workload on a card of its own, always the same."""
    ratios = array("f", [busy]) * MINUTES
    series = UseSeries(memory=array("q", [int(memory * GIB)]) * MINUTES, most=ratios, least=ratios[:])
    use = WorkloadUse(
        workload=WorkloadName("ml", "Deployment", "chat", "main", "", "NVIDIA H200"),
        card=H200,
        held=WHOLE_CARD,
        series=series,
        used_devices=1,
        watched_seconds=MINUTES * 60.0,
        seen_ratio=1.0,
        busy_doubt=0.0,
    )
    return replace(use, **changes)


def advised(*uses: WorkloadUse) -> list[FitAdvice]:
    prices = Prices(currency="EUR", gpu_hour={"*": 4.0})
    facts = FitPeriodFacts(start=0.0, end=MINUTES * 60.0, prices=prices)
    rows = {row.workload: row for row in fit_statement(uses, facts, write_part).rows}
    return [rows[use.workload] for use in uses]


def test_the_smallest_profile_holds_the_peak_with_headroom() -> None:
    [row] = advised(used(13.0, 0.1))
    assert (row.kind, row.to, row.change) == ("smaller", "1g.18gb", "nvidia.com/mig-1g.18gb: 1")
    assert row.saved_gpus == pytest.approx(6 / 7)
    assert row.saved_per_hour == pytest.approx(4 * 6 / 7)


def test_headroom_counts_above_the_peak_of_a_single_minute() -> None:
    use = used(2.0, 0.1)
    use.series.memory[1000] = int(13.5 * GIB)  # 16.2 GiB with headroom, and 1g.18gb has 16
    assert advised(use)[0].to == "1g.35gb"


def test_busy_time_counts_by_its_upper_bound_and_by_the_percentile() -> None:
    use = used(10.0, 0.1)
    use.series.most[: MINUTES // 50] = array("f", [0.5]) * (MINUTES // 50)  # 2 % of the minutes
    assert advised(use)[0].to == "4g.71gb"
    use.series.most[: MINUTES // 80] = array("f", [0.1]) * (MINUTES // 80)  # less than 1 % is left
    assert advised(use)[0].to == "1g.18gb"


def test_a_profile_must_have_the_bandwidth_too() -> None:
    assert advised(used(10.0, 0.1, dram_ratio=0.3))[0].to == "3g.71gb"


def test_bandwidth_that_is_not_known_is_taken_to_be_as_much_as_the_busy_time() -> None:
    busy = 0.14  # of the card: 1g.18gb has 1/7 of the cores, and 1/8 of the bandwidth
    assert advised(used(10.0, busy, dram_ratio=0.1))[0].to == "1g.18gb"
    assert advised(used(10.0, busy))[0].to == "1g.35gb"


def test_memory_that_grows_is_given_room_to_grow() -> None:
    use = used(10.0, 0.1)
    use.series.memory[MINUTES // 2 :] = array("q", [13 * GIB]) * (MINUTES // 2)
    assert advised(use)[0].to == "1g.35gb"


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (used(10.0, 0.1, watched_seconds=86_000.0), "a day is needed"),
        (used(10.0, 0.1, seen_ratio=0.6), "60% of its time was seen"),
        (used(10.0, 0.1, held=HeldPart(kind=INSTANCE)), "not known how much of the card"),
        (used(10.0, 0.1, busy_doubt=0.3), "too wide"),
        (used(UNSEEN / GIB, 0.1), "memory is not measured"),
        (used(10.0, UNSEEN), "busy time is not measured"),
        (used(10.0, 0.0), "7 d are needed"),
    ],
    ids=["short", "unseen", "unsized", "doubtful", "no memory", "no busy time", "not yet idle"],
)
def test_what_cannot_be_judged_is_said_with_the_reason(use: WorkloadUse, reason: str) -> None:
    [row] = advised(use)
    assert row.kind == "unknown"
    assert reason in row.why[0]
    assert row.saved_gpus is None


def test_a_time_slice_and_several_cards_in_use_are_left() -> None:
    for held in (HeldPart(kind=TIME_SLICE, ratio=0.25), HeldPart(kind=WHOLE, ratio=1.0, devices=2)):
        [row] = advised(used(1.0, 0.05, held=held, used_devices=2))
        assert (row.kind, row.saved_gpus, row.change) == ("leave", 0.0, "")


def test_who_is_always_busy_needs_more_unless_it_is_a_job() -> None:
    busy = used(100.0, 0.99)
    [row] = advised(busy)
    assert (row.kind, row.to) == ("larger", "more replicas")
    job = replace(busy, workload=WorkloadName("ml", "PyTorchJob", "train", "main", "", "NVIDIA H200"))
    assert advised(job)[0].kind == "leave"


def test_workloads_share_a_card_if_their_minutes_fit() -> None:
    card = CardType(model="NVIDIA L40S", memory_bytes=45 * GIB)
    day, night = (used(15.0, 0.0, card=card) for _ in range(2))
    half = MINUTES // 2
    for use, first in ((day, 0), (night, half)):
        use.series.most[first : first + half] = array("f", [0.8]) * half
    names = [WorkloadName("ml", "Deployment", name, "main", "", card.model) for name in ("day", "night", "too")]
    rows = advised(replace(day, workload=names[0]), replace(night, workload=names[1]))
    assert [(row.kind, row.saved_gpus, row.together) for row in rows] == [
        ("share", 0.5, (names[1],)),
        ("share", 0.5, (names[0],)),
    ]
    rows = advised(replace(day, workload=names[0]), replace(day, workload=names[2]))
    assert [row.kind for row in rows] == ["leave", "leave"]


def test_parts_are_asked_for_in_the_words_of_their_system() -> None:
    part = WantedPart(memory_bytes=10 * GIB, core_ratio=0.25, ratio=0.25)
    assert write_part(PORTION, "hami", part) == "nvidia.com/gpumem: 10240\nnvidia.com/gpucores: 25"
    assert write_part(PORTION, "volcano", part) == "volcano.sh/vgpu-memory: 10240\nvolcano.sh/vgpu-cores: 25"
    assert write_part(PORTION, "kai", part) == 'gpu-fraction: "0.25"'
    assert write_part(PORTION, "", part) == ""
    assert write_part(WHOLE, "", WantedPart(devices=2)) == "nvidia.com/gpu: 2"
    assert "replicas: 3" in write_part(TIME_SLICE, "", WantedPart(devices=3))
    assert system_of("nvidia_com_gpumem") == "hami"
    assert system_of("nvidia_com_gpu") == ""


@pytest.mark.parametrize(("doubt", "certainty"), [(0.0, "high"), (0.2, "low"), (None, "low")])
def test_without_bounds_nothing_is_sure(doubt: float | None, certainty: str) -> None:
    [row] = advised(used(13.0, 0.1, busy_doubt=doubt, watched_seconds=8 * 86_400.0))
    assert (row.kind, row.certainty) == ("smaller", certainty)
