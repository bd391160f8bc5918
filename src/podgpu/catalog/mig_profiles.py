"""The MIG profiles of each card, by NVIDIA's MIG user guide.

An instance occupies memory slices side by side, from one of the starts that its profile allows. The first profile
begins on every slice except the last, so seven of them fit. Memory is what `nvidia-smi mig -lgip` shows, the least of
the drivers that were compared: less than the profile's name says. Where none was found, it is that of the smaller
instances which take its place.
"""

import re
from functools import lru_cache

from msgspec import Struct

MEDIA = "+me"  # the only instance of its size that has the media engines
_GIB = 1 << 30


class MigProfile(Struct, frozen=True):
    """A size of instance that a card can be divided into."""

    name: str  # such as `1g.18gb`
    memory_bytes: int
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]  # the memory slices on which an instance may begin
    instances: int  # of this profile on a card at most


class MigCard(Struct, frozen=True):
    """A kind of card, and what it can be divided into, the smallest first."""

    name: str  # such as `H100 80GB`
    words: tuple[tuple[str, ...], ...]  # a model is of this kind if all words of a row are in its name
    memory_slices: int
    profiles: tuple[MigProfile, ...]


def _profile(name: str, gibibytes: float, memory_slices: int, starts: str, instances: int) -> MigProfile:
    return MigProfile(
        name=name,
        memory_bytes=int(gibibytes * _GIB),
        compute_slices=int(name.partition("g.")[0]),
        memory_slices=memory_slices,
        starts=tuple(map(int, starts)),
        instances=instances,
    )


def _in_eighths(name: str, words: tuple[tuple[str, ...], ...], *sizes: tuple[int, float]) -> MigCard:
    """`sizes` are of an eighth, a quarter, a half and the whole: gigabytes in the profile's name, and memory in GiB."""
    (eighth, small), (quarter, medium), (half, large), (whole, full) = sizes
    return MigCard(
        name=name,
        words=words,
        memory_slices=8,
        profiles=(
            _profile(f"1g.{eighth}gb", small, 1, "0123456", 7),
            _profile(f"1g.{eighth}gb{MEDIA}", small, 1, "0123456", 1),
            _profile(f"1g.{quarter}gb", medium, 2, "0246", 4),
            _profile(f"2g.{quarter}gb", medium, 2, "024", 3),
            _profile(f"3g.{half}gb", large, 4, "04", 2),
            _profile(f"4g.{half}gb", large, 4, "0", 1),
            _profile(f"7g.{whole}gb", full, 8, "0", 1),
        ),
    )


# The first whose words are all in a model's name counts, so the more specific ones come first.
CARDS = (
    _in_eighths("A100 40GB", (("A100", "40GB"), ("A800", "40GB")), (5, 4.75), (10, 9.62), (20, 19.5), (40, 39.25)),
    _in_eighths("A100 80GB", (("A100", "80GB"), ("A800", "80GB")), (10, 9.5), (20, 19.5), (40, 39.25), (80, 78.75)),
    _in_eighths("H100 94GB", (("H100", "94GB"), ("H100", "NVL")), (12, 10.75), (24, 21.62), (47, 46.38), (94, 92.76)),
    _in_eighths("H100 96GB", (("H100", "96GB"), ("H20",)), (12, 11.0), (24, 23.0), (48, 46.5), (96, 93.0)),
    _in_eighths("H100 80GB", (("H100",), ("H800",)), (10, 9.75), (20, 19.62), (40, 39.5), (80, 79.25)),
    _in_eighths("GH200 144GB", (("GH200", "144G"),), (18, 17.5), (36, 35.25), (72, 70.5), (144, 141.0)),
    _in_eighths("GH200 96GB", (("GH200",),), (12, 11.0), (24, 23.0), (48, 46.5), (96, 93.0)),
    _in_eighths("H200", (("H200",),), (18, 16.0), (35, 32.25), (71, 69.25), (141, 138.5)),
    _in_eighths("GB200", (("GB200",),), (23, 20.0), (47, 45.5), (93, 91.0), (186, 182.0)),
    _in_eighths("B200", (("B200",),), (23, 20.5), (45, 44.25), (90, 89.0), (180, 178.5)),
    MigCard(
        name="A30",
        words=(("A30",),),
        memory_slices=4,
        profiles=(
            _profile("1g.6gb", 5.81, 1, "0123", 4),
            _profile("1g.6gb+me", 5.81, 1, "0123", 1),
            _profile("2g.12gb", 11.69, 2, "02", 2),
            _profile("2g.12gb+me", 11.69, 2, "02", 1),
            _profile("4g.24gb", 23.44, 4, "0", 1),
        ),
    ),
)  # fmt: skip


@lru_cache(maxsize=256)
def mig_card(model: str) -> MigCard | None:
    """Find the kind of a card by its model, such as `NVIDIA A100-SXM4-80GB`. None if the table does not have it."""
    # An H20-3e is not an H20: it has 141 GB.
    found = set(re.findall(r"[A-Z0-9]+(?:-3E)?", model.upper()))
    return next((card for card in CARDS if any(found.issuperset(words) for words in card.words)), None)


def profiles_of(model: str) -> tuple[MigProfile, ...]:
    """List the profiles of a model, the smallest first. Empty if the table does not have it."""
    card = mig_card(model)
    return card.profiles if card else ()
