"""The colours of namespaces, as people see them who confuse red and green."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "src" / "podgpu" / "web"
STYLE = (WEB / "app.css").read_text(encoding="utf-8")
COLOURS = 11  # ten, and the grey of what is outside Kubernetes
LEAST_APART = 10.0  # of CIEDE2000; below 3 two colours side by side look alike
LEAST_BESIDE = 20.0  # the same, of namespaces that share a card
LEAST_CONTRAST = 4.5  # of text, by WCAG

Triple = tuple[float, float, float]

# Machado, Oliveira and Fernandes, 2009: what is left of linear RGB without one kind of cone.
SIGHTS: dict[str, tuple[Triple, Triple, Triple]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}


def linear(colour: str) -> Triple:
    if len(colour) == 4:
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, sight: str) -> Triple:
    """The colour in CIELAB, through these eyes."""
    given = linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(part * value for part, value in zip(row, given, strict=True)))) for row in SIGHTS[sight]
    )
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def apart(left: Triple, right: Triple) -> float:
    """How different two colours look: CIEDE2000."""
    (light1, a1, b1), (light2, a2, b2) = left, right
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * sqrt(mean**7 / (mean**7 + 25**7))
    chroma1, chroma2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    hue1, hue2 = degrees(atan2(b1, a1 * stretch)) % 360, degrees(atan2(b2, a2 * stretch)) % 360
    turn = (hue2 - hue1 + 180) % 360 - 180
    light, chroma, hue = (light1 + light2) / 2, (chroma1 + chroma2) / 2, (hue1 + turn / 2) % 360
    tone = (
        1
        - 0.17 * cos(radians(hue - 30))
        + 0.24 * cos(radians(2 * hue))
        + 0.32 * cos(radians(3 * hue + 6))
        - 0.2 * cos(radians(4 * hue - 63))
    )
    by_light = (light2 - light1) / (1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2))
    by_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    by_hue = 2 * sqrt(chroma1 * chroma2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * tone)
    blue = -sin(radians(60 * exp(-(((hue - 275) / 25) ** 2)))) * 2 * sqrt(chroma**7 / (chroma**7 + 25**7))
    return sqrt(by_light**2 + by_chroma**2 + by_hue**2 + blue * by_chroma * by_hue)


def palettes(prefix: str) -> list[list[str]]:
    """Of the light theme, and of the dark one, which is there twice: as chosen, and as the system wants it."""
    found = re.findall(rf"--{prefix}(?:[0-9]|x):(#[0-9a-f]+)", STYLE)
    return [found[at : at + COLOURS] for at in range(0, len(found), COLOURS)]


def test_there_is_a_light_palette_and_a_dark_one() -> None:
    light, dark, chosen = palettes("c")
    assert len(light) == COLOURS and light != dark == chosen


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colours", palettes("c")[:2], ids=["light", "dark"])
def test_no_two_namespaces_look_alike(colours: Sequence[str], sight: str) -> None:
    pairs = {(left, right): apart(seen(left, sight), seen(right, sight)) for left, right in combinations(colours, 2)}
    closest = min(pairs, key=lambda pair: pairs[pair])
    assert pairs[closest] >= LEAST_APART, closest


def test_the_page_knows_which_colours_are_too_alike_to_be_neighbours() -> None:
    light, dark = palettes("c")[:2]
    alike = [
        [one, other]
        for one, other in combinations(range(COLOURS - 1), 2)
        if any(apart(seen(of[one], "normal"), seen(of[other], "normal")) < LEAST_BESIDE for of in (light, dark))
    ]
    assert f"const LIKE = {alike};" in (WEB / "colours.js").read_text(encoding="utf-8")


ASSIGNED = """
const { Colours, pairsOf } = await import(process.argv[1]);
const colours = new Colours();
for (const [names, cards] of JSON.parse(process.argv[2])) colours.learn(names, cards.flatMap(pairsOf));
console.log(JSON.stringify(Object.fromEntries(colours.given)));
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The page's own module, where node takes it for one."""
    (tmp_path / "colours.mjs").write_bytes((WEB / "colours.js").read_bytes())
    return tmp_path / "colours.mjs"


def assigned(script: Path, *lessons: tuple[Sequence[str], Sequence[Sequence[str]]]) -> dict[str, int]:
    """The colours that the page gives, by namespace. A lesson is all namespaces, and who is on each card."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which Debian's npm brings; .ci/run installs it")
    command = [node, "--input-type=module", "-e", ASSIGNED, str(script), json.dumps(lessons)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: int(look[1:]) for name, look in json.loads(said).items()}


def beside(given: dict[str, int], card: Sequence[str]) -> float:
    """How different the two most alike namespaces of a card look, in the worse theme."""
    return min(
        apart(seen(of[given[one]], "normal"), seen(of[given[other]], "normal"))
        for one, other in combinations(card, 2)
        for of in palettes("c")[:2]
    )


def test_namespaces_that_share_a_card_are_told_apart(script: Path) -> None:
    names = ["assist", "lab", "research", "search", "speech", "vision"]
    cards = [("lab", "search"), ("assist", "vision"), ("lab", "search", "vision"), ("speech", "vision")]
    given = assigned(script, (names, cards))
    assert min(beside(given, card) for card in cards) >= LEAST_BESIDE
    assert len(set(given.values())) == len(names)


def test_more_namespaces_than_colours_still_differ_on_each_card(script: Path) -> None:
    names = [f"team-{number:02}" for number in range(30)]
    cards = [names[at : at + 4] for at in range(27)]
    given = assigned(script, (names, cards))
    assert min(beside(given, card) for card in cards) >= LEAST_BESIDE


def test_a_namespace_keeps_its_colour_until_it_comes_to_a_card_with_one_alike(script: Path) -> None:
    names = ["a", "b", "lab", "search"]
    first = assigned(script, (names, []))
    assert first == {"a": 0, "b": 1, "lab": 2, "search": 3}
    later = assigned(script, (names, []), (["c"], [("b", "lab")]), ([], [("b", "search")]))
    assert {name for name in names if later[name] != first[name]} == {"search"}
    assert beside(later, ("b", "search")) >= LEAST_BESIDE


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_names_can_be_read_on_every_colour(number: int) -> None:
    texts = dict(zip(palettes("c")[number], palettes("on")[number], strict=True))
    poor = {colour: text for colour, text in texts.items() if contrast(colour, text) < LEAST_CONTRAST}
    assert poor == {}


def test_the_distance_is_that_of_the_published_examples() -> None:
    """Sharma, Wu and Dalal, 2005, pairs 1 and 17."""
    assert apart((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert apart((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)
