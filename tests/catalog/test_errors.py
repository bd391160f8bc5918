"""Errors are counted from 0 on, so that Prometheus sees the first one as an increase."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.catalog.agent_parts import PARTS, AgentPart
from podgpu.kube.api import REASONS as API_REASONS
from podgpu.model import ErrorCount, PartStatus, Snapshot
from podgpu.sources.nvml.failure import REASONS as NVML_REASONS
from podgpu.views.native import families
from tests.views.quirks import SNAPSHOT

DOCS = Path(__file__).parents[2] / "docs"


def counted(snapshot: Snapshot) -> dict[tuple[str, str], float]:
    [family] = [family for family in families(snapshot, {}) if family.name == "podgpu_errors_total"]
    pairs = [(labels[1].pairs(), value) for labels, value in family.samples.items()]
    return {(labels["source"], labels["reason"]): value for labels, value in pairs}


def test_a_reason_is_there_before_its_first_error() -> None:
    parts = (PartStatus(name="nvml", up=True), PartStatus(name="podresources", up=True))
    before = counted(replace(SNAPSHOT, parts=parts, errors=()))
    assert before["nvml", "hung"] == before["podresources", "deadline"] == before["sharing", "unknown_id"] == 0
    assert not any(source == "apiserver" for source, _ in before)  # it does not run here
    error = ErrorCount(source="nvml", reason="hung", count=1)
    after = counted(replace(SNAPSHOT, parts=parts, errors=(error,)))
    assert after["nvml", "hung"] == 1 and after.keys() == before.keys()


def test_an_error_that_nobody_expects_is_counted_when_it_comes() -> None:
    error = ErrorCount(source="nvml", reason="operating_system", count=2)
    assert counted(replace(SNAPSHOT, parts=(), errors=(error,)))["nvml", "operating_system"] == 2


def test_what_the_api_server_can_go_wrong_with_is_expected() -> None:
    assert set(PARTS["apiserver"].errors) == set(API_REASONS)


def test_rare_codes_of_the_driver_alone_are_not_expected() -> None:
    rare = {
        "uninitialized",
        "invalid_argument",
        "not_supported",
        "not_found",
        "insufficient_size",
        "function_not_found",
        "operating_system",
        "in_use",
        "memory",
        "version_mismatch",
    }
    assert set(NVML_REASONS.values()) - set(PARTS["nvml"].errors) == rare


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_reason_is_explained(part: AgentPart) -> None:
    written = "".join((DOCS / name).read_text() for name in ("operations.md", "sources.md", "switches.md"))
    for reason in part.errors:
        assert f"`{reason}`" in written, reason
