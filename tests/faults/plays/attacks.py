"""N: attacks that once succeeded."""

from tests.fakekubelet.kubelet import Reply
from tests.faults.play import Play
from tests.faults.plays.kubelet import MAP, MIB, lists
from tests.faults.signs import part_down

PLAYS = (
    Play(
        id="N12",
        what="the kubelet lists millions of pods without a name",
        fault=lists(lambda: Reply(b"\x0a\x00" * (4 * MIB))),
        shows=part_down(MAP, "too_many"),
    ),
)
