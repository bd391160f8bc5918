"""The table of MIG profiles, against what NVIDIA documents."""

import pytest

from podgpu.catalog.mig_profiles import CARDS, MigCard, MigProfile, mig_card, profiles_of
from podgpu.insight.packing import pack_slices

H200, A30 = "NVIDIA H200", "NVIDIA A30"


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("NVIDIA A100-SXM4-40GB", "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("NVIDIA A100-PCIE-40GB", "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("NVIDIA A100 80GB PCIe", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("NVIDIA H100 80GB HBM3", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("NVIDIA H100 PCIe", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("NVIDIA H100 NVL", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
        ("NVIDIA GH200 480GB", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        ("NVIDIA H20", "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"),
        (H200, "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("NVIDIA B200", "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        ("NVIDIA GB200", "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb"),
        (A30, "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
        ("NVIDIA H20-3e", ""),  # has more memory than an H20, so its profiles have other names
        ("NVIDIA L40S", ""),
        ("NVIDIA A100", ""),  # 40 or 80 GB: not known
        ("Tesla T4", ""),
        ("", ""),
    ],
)
def test_a_model_has_the_profiles_of_the_user_guide(model: str, names: str) -> None:
    assert " ".join(profile.name for profile in profiles_of(model)) == names


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_placements_agree_with_the_slices_and_the_number_of_instances(card: MigCard) -> None:
    compute = 7 if card.memory_slices == 8 else 4
    for profile in card.profiles:
        assert all(start + profile.memory_slices <= card.memory_slices for start in profile.starts)
        assert fit_together([profile] * profile.instances, card)
        assert not fit_together([profile] * (profile.instances + 1), card)
        assert profile.instances * profile.compute_slices <= compute
        # The memory is less than the name says, by no more than a quarter.
        assert 0.7 <= profile.memory_bytes / (1e9 * _gigabytes(profile.name)) <= 1.08
    assert [profile.memory_bytes for profile in card.profiles] == sorted(
        profile.memory_bytes for profile in card.profiles
    )


def fit_together(profiles: list[MigProfile], card: MigCard) -> bool:
    return pack_slices(profiles, card).cards == 1


def _gigabytes(name: str) -> int:
    return int(name.partition("g.")[2].partition("gb")[0])


@pytest.mark.parametrize(
    ("model", "sizes", "fits"),
    [
        (H200, "2g.35gb 2g.35gb 2g.35gb 1g.18gb", True),
        (H200, "2g.35gb 2g.35gb 2g.35gb 1g.35gb", True),
        (H200, "3g.71gb 3g.71gb", True),
        (H200, "4g.71gb 3g.71gb", True),
        (H200, "4g.71gb 2g.35gb 1g.18gb", True),
        (H200, "3g.71gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb", True),
        (H200, "1g.35gb 1g.35gb 1g.35gb 1g.35gb", True),
        (H200, "1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb", True),
        (H200, "4g.71gb 3g.71gb 1g.18gb", False),
        (H200, "3g.71gb 3g.71gb 1g.18gb", False),  # a compute slice is left, but no memory
        (H200, "4g.71gb 4g.71gb", False),
        (H200, "4g.71gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb", False),  # none begins on the last slice
        (H200, "2g.35gb 2g.35gb 2g.35gb 2g.35gb", False),
        (H200, "7g.141gb 1g.18gb", False),
        (H200, "1g.18gb+me 1g.18gb+me", False),
        (A30, "2g.12gb 1g.6gb 1g.6gb", True),
        (A30, "2g.12gb 2g.12gb", True),
        (A30, "2g.12gb+me 1g.6gb+me", False),
        (A30, "4g.24gb 1g.6gb", False),
    ],
)
def test_only_documented_combinations_fit_on_one_card(model: str, sizes: str, fits: bool) -> None:
    card = mig_card(model)
    assert card
    by_name = {profile.name: profile for profile in card.profiles}
    assert fit_together([by_name[size] for size in sizes.split()], card) is fits
