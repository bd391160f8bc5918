"""Every case that a sharing system's own code wrote is read as it is, or not at all."""

import lzma
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from podgpu.model import Claim, ContainerRef
from tests.oracle.case import Right
from tests.oracle.play import CASES, Played, played
from tests.oracle.verdict import NOT_UNDERSTOOD, RIGHT, WRONG, differences, verdict

# What cannot be known on the node, by kind of case; docs/sharing.md has the reasons.
UNKNOWN = {
    "gpushare": {"plugin<=0.3.0 GiB", "plugin master GiB, minors permuted"},
    "volcano-60": {"plugin-1.11", "plugin-1.11 factor", "plugin-1.12 factor"},
}
MOST_BYTES = 2 << 20
ROOT = Path(__file__).parents[2]
FILES = sorted(CASES.glob("*.jsonl.xz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".jsonl")[0])
async def test_no_case_is_read_wrongly(path: Path) -> None:
    cases = await played(path)
    wrong = [str(difference) for case in cases for difference in case.differences if difference.verdict == WRONG]
    assert wrong == []
    unknown = {case.case.kind for case in cases if case.verdict == NOT_UNDERSTOOD}
    assert unknown == UNKNOWN.get(path.name.partition(".jsonl")[0], set())
    assert Counter(case.verdict for case in cases)[RIGHT] >= len(cases) / 2
    assert left_open(cases) == []


def left_open(found: Iterable[Played]) -> list[str]:
    """Where containers run on their cards nothing is wrong either, and it is never unknown which card is meant."""
    differences = (difference for case in found for difference in case.running)
    return [
        str(difference)
        for difference in differences
        if difference.verdict == WRONG or difference.text == "claims nothing"
    ]


async def test_processes_settle_what_the_notes_leave_open() -> None:
    """Some cases claim nothing by the notes alone."""
    cases = await played(CASES / "gpushare.jsonl.xz")
    assert [difference for case in cases for difference in case.differences if difference.text == "claims nothing"]
    assert left_open(cases) == []


def test_the_cases_stay_small() -> None:
    assert FILES
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES


TRUE = Right(namespace="ns", pod="p", container="c", gpu="GPU-0", memory=100, cores=30.0, share=0.5)
CLAIM = Claim(
    gpu="GPU-0",
    container=ContainerRef("ns", "p", "c", "uid"),
    share=0.5,
    memory_limit_bytes=100,
    core_limit_ratio=0.3,
)


@pytest.mark.parametrize(
    ("claim", "judged"),
    [
        (CLAIM, RIGHT),
        (msgspec.structs.replace(CLAIM, gpu="GPU-1"), WRONG),
        (msgspec.structs.replace(CLAIM, mig="MIG-0"), WRONG),
        (msgspec.structs.replace(CLAIM, container=ContainerRef("ns", "p", "d")), WRONG),
        (msgspec.structs.replace(CLAIM, share=0.4), WRONG),
        (msgspec.structs.replace(CLAIM, memory_limit_bytes=99), WRONG),
        (msgspec.structs.replace(CLAIM, core_limit_ratio=0.31), WRONG),
        (msgspec.structs.replace(CLAIM, memory_limit_bytes=None), NOT_UNDERSTOOD),
        (msgspec.structs.replace(CLAIM, core_limit_ratio=None), NOT_UNDERSTOOD),
        (msgspec.structs.replace(CLAIM, share=0.0), NOT_UNDERSTOOD),
        (None, NOT_UNDERSTOOD),
    ],
)
def test_a_claim_is_judged_by_card_share_limits_and_container(claim: Claim | None, judged: str) -> None:
    assert verdict(differences([TRUE], [claim] if claim else [])) == judged


def test_what_the_truth_does_not_define_is_not_compared() -> None:
    bare = Right(namespace="ns", pod="p", container="c", gpu="GPU-0")
    assert verdict(differences([bare], [CLAIM])) == RIGHT


def test_ids_of_one_card_count_together() -> None:
    half = msgspec.structs.replace(CLAIM, share=0.25, memory_limit_bytes=50, core_limit_ratio=0.15)
    assert verdict(differences([TRUE], [half, half])) == RIGHT


def test_the_command_prints_one_line_a_file_and_the_differences(tmp_path: Path) -> None:
    """A truth that was changed is a difference."""
    cases = lzma.decompress((CASES / "aws.jsonl.xz").read_bytes()).splitlines()
    path = tmp_path / "forged.jsonl.xz"
    path.write_bytes(lzma.compress(cases[0].replace(b'"Truth":[{"NS":"ns"', b'"Truth":[{"NS":"other"', 1)))
    command = [sys.executable, "-m", "tests.oracle", "--show", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    printed = run.stdout.splitlines()
    assert printed[0] == "forged cases 1 right 0 wrong 1 not-understood 0"
    assert any(text.strip().startswith("not-understood: other/p0/main/GPU-") for text in printed)
