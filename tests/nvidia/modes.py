"""How NVIDIA's device plugin and DRA driver share cards: what each mode is given, and which pods then ask for what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakenvml.fake_node import FakeNode
from tests.nvidia.node import cards

SHARED = ".shared"
GPU, RENAMED = "nvidia.com/gpu", f"nvidia.com/gpu{SHARED}"
SMALL, LARGE = "nvidia.com/mig-1g.18gb", "nvidia.com/mig-3g.71gb"


@dataclass(frozen=True)
class PluginMode:
    """`asks` has a resource and a number for each pod; `parts` is how many parts a device of a resource has."""

    name: str
    offered: Mapping[str, int]
    asks: Mapping[str, tuple[str, int]]
    parts: Mapping[str, int] = field(default_factory=dict)
    sharing: str = "timeSlicing"
    is_renamed: bool = False
    words: tuple[str, ...] = ()
    mig: int | None = None  # the card that is divided into instances

    def cards(self) -> FakeNode:
        return cards(2, self.mig)

    def config(self) -> dict[str, Any]:
        """The file that the plugin is given."""
        if not self.parts:
            return {"version": "v1"}
        resources = [
            {"name": resource.removesuffix(SHARED), "replicas": number} for resource, number in self.parts.items()
        ]
        return {
            "version": "v1",
            "sharing": {self.sharing: {"renameByDefault": self.is_renamed, "resources": resources}},
        }


TIME_SLICING = PluginMode("time-slicing", {GPU: 8}, {"one": (GPU, 1), "two": (GPU, 1), "pair": (GPU, 2)}, {GPU: 4})
PLUGIN_MODES = (
    PluginMode("exclusive", {GPU: 2}, {"one": (GPU, 1)}),
    TIME_SLICING,
    PluginMode(
        "time-slicing-renamed",
        {RENAMED: 6},
        {"one": (RENAMED, 1), "two": (RENAMED, 1)},
        {RENAMED: 3},
        is_renamed=True,
    ),
    PluginMode(
        "mig-mixed",
        {GPU: 1, SMALL: 1, LARGE: 1},
        {"whole": (GPU, 1), "small": (SMALL, 1), "large": (LARGE, 1)},
        words=("--mig-strategy=mixed",),
        mig=1,
    ),
    PluginMode(
        "mig-mixed-time-slicing",
        {GPU: 1, SMALL: 3, LARGE: 1},
        {"whole": (GPU, 1), "small": (SMALL, 1), "pair": (SMALL, 2), "large": (LARGE, 1)},
        {SMALL: 3},
        words=("--mig-strategy=mixed",),
        mig=1,
    ),
    PluginMode("mps", {GPU: 8}, {"one": (GPU, 1), "two": (GPU, 1)}, {GPU: 4}, sharing="mps"),
    PluginMode(
        "index-ids",
        {GPU: 4},
        {"one": (GPU, 1), "pair": (GPU, 2)},
        {GPU: 2},
        words=("--device-id-strategy=index",),
    ),
)


@dataclass(frozen=True)
class Asked:
    """A claim: its class, what it consumes, which pods have it, and the part of its device that all of them hold."""

    share: float
    pods: tuple[str, ...]
    consumes: Mapping[str, str] = field(default_factory=dict)
    mig: str = ""  # a profile
    is_admin: bool = False  # looks at all cards


@dataclass(frozen=True)
class DriverMode:
    name: str
    claims: Mapping[str, Asked]
    shares: str = ""  # how the driver is told to have cards shared
    mig: int | None = None
    asks: Mapping[str, int] = field(default_factory=dict)  # pods that ask for cards as for those of a device plugin

    def cards(self) -> FakeNode:
        return cards(2 if self.mig is None else 3, self.mig)

    @property
    def words(self) -> tuple[str, ...]:
        return ("--feature-gates=ConsumableShares=true", f"--consumable-shares={self.shares}") if self.shares else ()


CARD_MIB = 143_771
DRIVER_MODES = (
    DriverMode(
        "dra",
        {
            "card": Asked(1.0, ("one",)),
            "shared": Asked(1.0, ("two", "three")),
            "small": Asked(1.0, ("mig",), mig="1g.18gb"),
        },
        mig=2,
    ),
    DriverMode(
        "dra-shares",
        {
            "default": Asked(0.25, ("one",)),
            "three": Asked(0.75, ("most",), {"shares": "3"}),
            "memory": Asked(71885 / CARD_MIB, ("half",), {"memory": "71885Mi"}),
            "both": Asked(0.25, ("quarter",), {"memory": "10Gi", "shares": "1"}),
            "twins": Asked(0.25, ("left", "right")),
            "small": Asked(1.0, ("mig",), mig="1g.18gb"),  # all of its multiprocessors
        },
        shares="4",
        mig=2,
    ),
    DriverMode(
        "dra-memory",
        {
            "default": Asked(1.0, ("all",)),
            "half": Asked(71885 / CARD_MIB, ("half",), {"memory": "71885Mi"}),
            "tenth": Asked(14377 / CARD_MIB, ("tenth",), {"memory": "14377Mi"}),
            "small": Asked(1.0, ("mig",), mig="1g.18gb"),
        },
        shares="memory",
        mig=2,
    ),
    DriverMode(
        "dra-unlimited",
        {name: Asked(0.0, (name,)) for name in ("one", "two", "three", "four", "five")},
        shares="unlimited",
    ),
    DriverMode(
        "dra-admin-access",
        {"card": Asked(1.0, ("one",)), "look": Asked(0.0, ("monitor",), is_admin=True)},
    ),
    DriverMode("dra-extended-resource", {"card": Asked(1.0, ("one",))}, asks={"plain": 1}),
)
