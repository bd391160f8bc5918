"""An old name is served, and warned of, for one minor version."""

import pytest

from podgpu.catalog.renames import Rename, in_force
from podgpu.doctor import Status
from podgpu.doctor.environment import judged
from podgpu.views.native import families, under_old_names
from tests.views.quirks import SNAPSHOT

RENAME = Rename("podgpu_gpu_draw_watts", "podgpu_gpu_power_watts", "0.2")


@pytest.mark.parametrize(("version", "served"), [("0.2.0", True), ("0.2.9", True), ("0.3.0", False), ("1.0.0", False)])
def test_the_old_name_lasts_until_the_next_minor_version(version: str, *, served: bool) -> None:
    assert bool(in_force(version, (RENAME,))) is served
    verdict = judged(version, (RENAME,))
    assert verdict.status is (Status.WARN if served else Status.PASS)
    if served:
        assert verdict.detail == "podgpu_gpu_draw_watts is now podgpu_gpu_power_watts, and goes in 0.3"


def test_the_old_name_has_the_same_series_and_says_what_the_new_one_is() -> None:
    filled = families(SNAPSHOT, {})
    (old,) = under_old_names(filled, [RENAME, Rename("a", "nobody_has_this", "0.2")])
    new = next(family for family in filled if family.name == RENAME.new)
    assert (old.name, old.kind, old.samples) == (RENAME.old, new.kind, new.samples)
    assert old.help == "Renamed to podgpu_gpu_power_watts; goes in 0.3."
