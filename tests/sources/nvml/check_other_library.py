"""Another NVML library than our own fake, with the profile it plays: `make test-nvml LIBRARY=PATH PROFILE=PATH`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent.rig import RunningAgent, running_agent
from tests.fakenvml.fake_node import FakeNode
from tests.sources.nvml.mock_profile import (
    FACTS,
    USE,
    VALUES,
    Compared,
    MockProfile,
    Tree,
    at,
    merged,
    number,
    unjudged,
)

# Read at once: no test keeps the caller's variables.
LIBRARY, PROFILE = (os.environ.get(f"PODGPU_TEST_NVML_{word}", "") for word in ("LIBRARY", "PROFILE"))
CONFIG = "config.yaml"
OVERRIDES = "overrides.yaml"  # beside the configuration: the mock reads it again and again
TOLERANCE = 1e-9
ARCHITECTURES = {"ada_lovelace": "Ada"}
GIB = 1 << 30


def given(path: str, word: str) -> Path:
    """Return a path as it was given. Without one, nothing can be tried."""
    if not path:
        pytest.skip(f"no other NVML library: make test-nvml LIBRARY=PATH PROFILE=PATH; {word} is not set")
    if not Path(path).is_file():
        pytest.fail(f"{word} names no file: {path}")
    return Path(path).resolve()


@pytest.fixture(scope="module")
def profile() -> MockProfile:
    given(LIBRARY, "LIBRARY")
    return MockProfile.read(given(PROFILE, "PROFILE"))


@contextmanager
def playing(profile: MockProfile, folder: Path) -> Iterator[RunningAgent]:
    """Run an agent over the library while it plays a profile, and wait until every card was read in full."""
    folder.mkdir(exist_ok=True)
    profile.write(folder / CONFIG)
    library = given(LIBRARY, "LIBRARY")
    variables = {"MOCK_NVML_CONFIG": str(folder / CONFIG), "MOCK_NVML_OVERRIDES_TTL": "100ms"}
    flags = (f"--nvml.library={library}", "--series.detail=on")
    with running_agent(FakeNode([]), folder, library, flags=flags, variables=variables) as agent:
        agent.wait_for("all cards", lambda: len(page(agent, "memory_total_bytes")) == len(profile.cards))
        agent.wait_for("slow values", lambda: len(page(agent, "power_limit_watts")) == len(profile.cards))
        yield agent


def page(agent: RunningAgent, series: str, **labels: str) -> dict[int, float]:
    """Return a series of the page by the number of the card."""
    found = agent.series().get(f"podgpu_gpu_{series}", [])
    return {int(own["gpu"]): value for own, value in found if labels.items() <= own.items()}


def differences(agent: RunningAgent, cards: list[Tree], compared: tuple[Compared, ...]) -> list[str]:
    series = agent.series()
    found = []
    for row in compared:
        shown = {
            int(labels["gpu"]): value
            for labels, value in series.get(f"podgpu_gpu_{row.series}", [])
            if row.labels.items() <= labels.items()
        }
        for index, card in enumerate(cards):
            plain = number(at(card, row.key))
            wanted = None if plain is None else plain * row.factor
            if not _equal(shown.get(index), wanted):
                found.append(f"GPU {index}: {row.key} is {wanted}, {row.series}{dict(row.labels)} {shown.get(index)}")
    return found


def _equal(shown: float | None, wanted: float | None) -> bool:
    if shown is None or wanted is None:
        return shown is wanted
    return abs(shown - wanted) <= TOLERANCE * max(abs(wanted), 1.0)


def test_every_key_of_the_profile_is_judged(profile: MockProfile) -> None:
    assert [key for card in profile.cards for key in unjudged(card)] == []


def test_every_value_of_the_profile_is_on_the_page(profile: MockProfile, tmp_path: Path) -> None:
    with playing(profile, tmp_path) as agent:
        assert differences(agent, profile.cards, VALUES) == []
        document = agent.snapshot()
        assert document["driver_version"] == profile.document["system"]["driver_version"]
        assert document["nvml_version"] == profile.document["system"]["nvml_version"]
        assert [facts(card["gpu"]) for card in document["cards"]] == [facts_of(card) for card in profile.cards]
        assert {card["gpu"]["mig_enabled"] for card in document["cards"]} == {False}
        assert page(agent, "processes") == dict.fromkeys(range(len(profile.cards)), 0.0)
        assert [error for error in document["errors"] if error["source"] == "nvml"] == []


def facts(gpu: dict[str, Any]) -> dict[str, Any]:
    shown = ("model", "uuid", "serial", "vbios", "minor", "index", "architecture", "compute_capability", "pci_bus_id")
    return {key: gpu.get(key) for key in (*shown, *(key for key in FACTS.values() if key.startswith("inforom")))}


def facts_of(card: Tree) -> dict[str, Any]:
    name = card["architecture"]
    return {fact: at(card, key) for key, fact in FACTS.items()} | {
        "architecture": ARCHITECTURES.get(name, name.capitalize()),
        "compute_capability": "{major}.{minor}".format(**card["compute_capability"]),
        "pci_bus_id": f"0000{card['pci']['bus_id']}",
    }


def own_values(index: int, card: Tree) -> Tree:
    """Values that no other card has, and none of which is 0.

    This mock has a fixed 0 for encoders, decoders and PCIe replays, and counts retired pages by their addresses.
    """
    least, most = card["power"]["min_limit_mw"], card["power"]["max_limit_mw"]
    used, drawn = (index + 1) * GIB, (least + most) // 2 + 1000 * index
    totals = {"single_bit": {"total": 3 + index}, "double_bit": {"total": 13 + index}}
    return {
        "memory": {"used_bytes": used, "free_bytes": card["memory"]["free_bytes"] - used},
        "power": {"current_draw_mw": drawn, "total_energy_consumption_mj": 7_000_000 + index},
        "thermal": {"temperature_gpu_c": 41 + index, "temperature_memory_c": 51 + index},
        "pcie": {"current_link_gen": 1 + index % 3, "current_link_width": 8},
        "clocks": dict.fromkeys(("graphics_current", "sm_current", "video_current"), 600 + 10 * index),
        "clocks_throttle_reasons": {"gpu_idle": False, "hw_thermal_slowdown": index % 2 == 0, "sw_power_cap": True},
        "performance_state": f"P{1 + index}",
        "utilization": {"gpu": 21 + index, "memory": 11 + index, "jpeg": 5 + index, "ofa": 6 + index},
        "ecc": {"errors": {"volatile": totals, "aggregate": totals}},
        "remapped_rows": {"correctable": 4 + index, "uncorrectable": 2 + index, "pending": True},
        "processes": [{"pid": os.getpid(), "type": "C", "used_memory_mib": 100, "sm_util": 40 + index}],
    }


def test_values_that_differ_from_card_to_card_do_so_on_the_page(profile: MockProfile, tmp_path: Path) -> None:
    steady = profile.steady()
    own = {index: own_values(index, card) for index, card in enumerate(steady.cards)}
    cards = [merged(card, own[index]) for index, card in enumerate(steady.cards)]
    inject(tmp_path, own)
    with playing(steady, tmp_path) as agent:
        assert differences(agent, cards, (*VALUES, *USE)) == []
        for index in own:
            # The mock answers only the older call, and lists no process to the bindings, which ask for the size first.
            agent.wait_for("a process", lambda card=index: bool(agent.processes(gpu=card)))  # type: ignore[misc]
            (process,) = agent.processes(gpu=index)
            assert (process["pid"], process["sm_ratio"]) == (os.getpid(), pytest.approx((40 + index) / 100))
            assert agent.snapshot()["cards"][index]["gpu"]["sampled_by"] == "ProcessUtilization"


def test_nvlinks_and_their_rates_are_on_the_page(profile: MockProfile, tmp_path: Path) -> None:
    cards = range(len(profile.cards))
    with playing(profile, tmp_path) as agent:
        if not profile.links:
            assert set(page(agent, "nvlink_links").values()) <= {0.0}
            assert page(agent, "nvlink_transmit_bytes_per_second") == {}
            return
        assert page(agent, "nvlink_links") == dict.fromkeys(cards, profile.links)
        assert page(agent, "nvlink_speed_bytes_per_second") == dict.fromkeys(cards, profile.link_speed)
        for direction in ("transmit", "receive"):
            assert page(agent, f"nvlink_{direction}_bytes_total").keys() == set(cards)
        if number(at(profile.cards[0], "compute_capability.major")) < 9:  # type: ignore[operator]
            return  # rates come from GPM, which began with Hopper
        for direction in ("transmit", "receive"):
            agent.wait_for("rates", lambda name=direction: _adds_up(agent, name, profile.links))  # type: ignore[misc]


def _adds_up(agent: RunningAgent, direction: str, links: int) -> bool:
    """Whether the card's rate is that of its links together, each of them above 0."""
    series = agent.series()
    cards = series.get(f"podgpu_gpu_nvlink_{direction}_bytes_per_second", [])
    whole = {labels["gpu"]: value for labels, value in cards}
    parts: dict[str, list[float]] = {}
    for labels, value in series.get(f"podgpu_gpu_nvlink_link_{direction}_bytes_per_second", []):
        parts.setdefault(labels["gpu"], []).append(value)
    return bool(whole) and all(
        len(parts.get(gpu, [])) == links and min(parts[gpu]) > 0 and abs(sum(parts[gpu]) / value - 1) < 0.01
        for gpu, value in whole.items()
    )


def inject(folder: Path, faults: dict[int, Tree]) -> None:
    """Let the library fail from now on. It must never read half a file."""
    text = yaml.safe_dump({"version": 1, "devices": {str(index): fault for index, fault in faults.items()}})
    (folder / "overrides.new").write_text(text, encoding="utf-8")
    (folder / "overrides.new").rename(folder / OVERRIDES)


def test_each_failure_is_seen_and_ends(profile: MockProfile, tmp_path: Path) -> None:
    broken, lost, worn, linked = range(4)
    faults: dict[int, Tree] = {
        broken: {"failure": {"mode": "ecc_uncorrectable", "xid": {"code": 94}}},
        lost: {"failure": {"mode": "lost"}},
        worn: {
            "ecc": {"sram": {"volatile": {"uncorrectable_secded": 4}, "aggregate": {"uncorrectable_secded": 4}}},
            "clocks_throttle_reasons": {"hw_thermal_slowdown": True},
        },
        linked: {"nvlink_error": {"rate": 250}},
    }
    uncorrected = {"error": "uncorrected", "lifetime": "volatile"}
    with playing(profile, tmp_path) as agent:
        assert set(page(agent, "up").values()) == {1.0}
        inject(tmp_path, faults)
        agent.wait_for("the XID", lambda: page(agent, "xid_errors_total", xid="94") == {broken: 1.0})
        agent.wait_for("ECC errors", lambda: page(agent, "ecc_errors_total", **uncorrected)[broken] > 0)
        agent.wait_for("a lost card", lambda: page(agent, "up")[lost] == 0.0)
        assert page(agent, "problem", reason="lost") == {lost: 1.0}
        agent.wait_for("SRAM errors", lambda: page(agent, "ecc_sram_errors_total", **uncorrected).get(worn) == 4.0)
        agent.wait_for("throttling", lambda: page(agent, "clock_event", reason="hardware_thermal")[worn] == 1.0)
        if profile.links:
            agent.wait_for("NVLink errors", lambda: _link_errors(agent).get(linked, 0.0) > 0)
            assert {gpu for gpu, errors in _link_errors(agent).items() if errors} == {linked}
        healthy = [card for card, up in page(agent, "up").items() if up]
        assert sorted(healthy) == [card for card in range(len(profile.cards)) if card != lost]
        inject(tmp_path, {})
        agent.wait_for("the card is back", lambda: page(agent, "up")[lost] == 1.0)
        inject(tmp_path, {linked: {"failure": {"mode": "fallen_off_bus"}}})
        agent.wait_for("a card off the bus", lambda: page(agent, "up")[linked] == 0.0)


def _link_errors(agent: RunningAgent) -> dict[int, float]:
    """Return the errors of all kinds on the links of each card."""
    found: dict[int, float] = {}
    for labels, value in agent.series().get("podgpu_gpu_nvlink_errors_total", []):
        found[int(labels["gpu"])] = found.get(int(labels["gpu"]), 0.0) + value
    return found
