"""How sure the busy time of a row is, in every format of a bill by use, and what it costs to ask."""

import csv
import json
import re
from io import StringIO
from typing import Any

import pytest

from podgpu.views.text import width_of
from tests.cli.report.test_stores import CARD, POD, START, OneHour, report
from tests.cluster.store.stub import vector

CHAT = {**POD, "namespace": "assist", "pod": "chat"}
ALONE = {"node": "gpu-1", "gpu": "1", "uuid": "GPU-2"}
SOLO = {**POD, **ALONE, "namespace": "solo", "pod": "train-0"}
Labels = dict[str, str]


def ends(labels: Labels, name: str, least: int, most: int) -> list[tuple[Labels, int]]:
    return [({**labels, name: "least"}, least), ({**labels, name: "most"}, most)]


GROWN = {
    "podgpu_container_allocated_seconds_total": [(POD, 1800), (CHAT, 1800), (SOLO, 3600)],
    "podgpu_container_busy_seconds_total": [(POD, 1080), (CHAT, 720), (SOLO, 1830)],
    "podgpu_container_busy_bound_seconds_total": [
        *ends(POD, "bound", 0, 1800),
        *ends(CHAT, "bound", 0, 1800),
        *ends(SOLO, "bound", 1800, 1800),
    ],
    "podgpu_container_busy_likely_seconds_total": [
        *ends(POD, "end", 900, 1260),
        *ends(CHAT, "end", 630, 990),
        *ends(SOLO, "end", 1800, 1800),
    ],
    "podgpu_unattributed_busy_seconds_total": [({**CARD, "reason": "host"}, 0), ({**ALONE, "reason": "host"}, 0)],
    "podgpu_unattributed_busy_bound_seconds_total": [*ends(CARD, "bound", 0, 0), *ends(ALONE, "bound", 0, 0)],
    "podgpu_gpu_booked_busy_seconds_total": [(CARD, 1800), (ALONE, 1830)],
}


class SharedCard(OneHour):
    """Samples divide a card between two pods; a third pod is alone on another card, and its last minute is not over."""

    def about(self, query: str) -> Any:
        info = super().about(query)
        if "podgpu_gpu_info" in query or (not info["data"]["result"] and "podgpu_" not in query):
            for result in list(info["data"]["result"]):
                info["data"]["result"].append({**result, "metric": {**result["metric"], **ALONE}})
            return info
        metric = re.search(r"podgpu_\w+", query)
        if query.startswith("resets") or " unless " in query or metric is None:
            return vector()
        grown = GROWN.get(metric[0], [])
        return vector(*((labels, str(1000 + (self.at > START) * more)) for labels, more in grown))


@pytest.fixture
def store() -> SharedCard:
    return SharedCard()


async def test_json_has_the_range_the_bounds_and_a_word(store: SharedCard, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = await report(capsys, store, "--basis=used")
    assert code == 0, err
    rows = {row.get("namespace"): row for row in json.loads(out)["rows"]}
    names = ("least", "likely_least", "likely_most", "most")
    found = {name: [row[f"busy_hours_{end}"] for end in names] for name, row in rows.items() if name}
    assert found == {"ml": [0, 0.25, 0.325, 0.5], "assist": [0, 0.175, 0.25, 0.5], "solo": [0.508333] * 4}
    assert {name: rows[name]["certainty"] for name in found} == {
        "ml": "estimated",
        "assist": "estimated",
        "solo": "exact",
    }


async def test_csv_has_them_too_and_a_bill_by_held_time_leaves_them_empty(
    store: SharedCard, capsys: pytest.CaptureFixture[str]
) -> None:
    for basis, word, most in (("used", "estimated", "0.325"), ("held", "", "")):
        _, out, _ = await report(capsys, store, "-o", "csv", f"--basis={basis}")
        row = next(row for row in csv.DictReader(StringIO(out)) if row["namespace"] == "ml")
        assert (row["certainty"], row["busy_hours_likely_most"]) == (word, most)


async def test_the_table_shows_a_likely_range_as_one_and_fits(
    store: SharedCard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = await report(capsys, store, "-o", "table", "--basis=used")
    lines = out.splitlines()
    assert max(map(width_of, lines)) <= 80
    head = next(line for line in lines if line.startswith("NAMESPACE"))
    assert head.split()[:5] == ["NAMESPACE", "GPU-HOURS", "BUSY-HOURS", "RANGE", "USE"]
    cells = {line.split()[0]: line.split()[3] for line in lines[lines.index(head) + 1 :]}
    assert (cells["ml"], cells["assist"], cells["solo"]) == ("~0.25–0.33", "~0.18–0.25", "exact")
    _, out, _ = await report(capsys, store, "-o", "wide", "--basis=used")
    assert re.search(r"ml .*~0\.25–0\.33 +0\.00 +0\.50", out)


async def test_ranges_cost_few_questions(store: SharedCard, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {}
    for basis in ("held", "used"):
        store.asked.clear()
        await report(capsys, store, f"--basis={basis}")
        asked[basis] = len(store.asked)
    # Three families: twice before the period, and once in its window; those of containers also for what has ended.
    assert asked["used"] == asked["held"] + 2 * 3 + 3 + 2
