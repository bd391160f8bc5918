import json

import pytest

from podgpu.doctor import Finding, Status, rendering
from tests.conftest import Golden
from tests.doctor.sound_node import HERE, SOUND, examine, with_down

FINDINGS = examine(with_down("podresources", "no_socket", "no such file"), HERE)


def test_it_reads_well_at_80_columns(golden: Golden) -> None:
    golden("doctor-80.txt", rendering.text(SOUND, FINDINGS, 80, colour=False))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_longer_than_the_terminal_or_ends_in_blanks(width: int) -> None:
    room = max(width, 6 + 21 + 24)  # a narrow one keeps the columns
    for line in rendering.text(SOUND, FINDINGS, width, colour=False).splitlines():
        assert len(line) <= room
        assert line == line.rstrip()


def test_colour_is_given_only_when_asked_for() -> None:
    assert "\x1b" not in rendering.text(SOUND, FINDINGS, 80, colour=False)
    assert "\x1b[1;31mFAIL" in rendering.text(SOUND, FINDINGS, 80, colour=True)


def test_brackets_are_no_markup_and_a_long_id_pushes_nothing_away() -> None:
    odd = Finding(id="part." + "x" * 90, status=Status.FAIL, detail="[red]boo[/red]", advice="Look.")
    lines = rendering.text(SOUND, (odd,), 80, colour=False).splitlines()
    assert lines[1] == f"FAIL  part.{'x' * 90} [red]boo[/red]"
    assert lines[2].strip() == "→ Look."


def test_json_has_the_same_findings_and_their_counts(golden: Golden) -> None:
    text = rendering.json(SOUND, FINDINGS)
    golden("doctor.json", text)
    document = json.loads(text)
    assert [finding["id"] for finding in document["checks"]] == [finding.id for finding in FINDINGS]
    assert sum(document["counts"].values()) == len(FINDINGS)
    assert all(set(finding) == {"id", "status", "detail", "advice"} for finding in document["checks"])
