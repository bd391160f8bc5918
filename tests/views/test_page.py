import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.agent.join import bare
from podgpu.model import Booking, Device, PartStatus, Process, Snapshot, Tenant
from podgpu.views.page import POLICY, html
from tests.views.quirks import BUSY, SNAPSHOT, band
from tests.views.test_native import SNAPSHOTS

VOID = {"meta", "br", "link"}


class Outline(HTMLParser):
    """Collects tags and text, and demands that every tag is closed in turn."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_nothing_is_loaded_but_its_own_files_and_nothing_is_inline_but_the_one_script_of_the_policy() -> None:
    outline = Outline(html(SNAPSHOT, 1.0))
    assert not {tag for tag, _ in outline.tags} & {"style", "img", "iframe", "form"}
    loaded = [
        attrs.get("src") or attrs["href"]
        for tag, attrs in outline.tags
        if tag in ("script", "link") and attrs
    ]
    assert loaded == ["page/icon.svg", "page/table.css", "page/app.css", "page/app.js"]
    (inline,) = re.findall(r"<script>(.*?)</script>", html(SNAPSHOT, 1.0).decode())
    digest = b64encode(sha256(inline.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in POLICY and "unsafe" not in POLICY
    assert not [
        attrs for _, attrs in outline.tags if any(name.startswith("on") or name == "style" for name in attrs)
    ]


def test_without_a_script_the_page_reloads_itself() -> None:
    assert b'<noscript><meta http-equiv="refresh" content="5"></noscript>' in html(SNAPSHOT, 1.0)


def test_a_hostile_name_is_shown_as_it_is() -> None:
    assert '<script>alert("1")</script>' in Outline(html(SNAPSHOT, 1.0)).text


def test_the_stuck_call_and_the_next_step_are_named() -> None:
    text = Outline(html(SNAPSHOT, 1.0)).text
    assert "timeout in nvmlDeviceGetPowerUsage for 13 s" in text
    assert "no_socket in List for 90 s: <socket> missing" in text
    assert "Mount /var/lib/kubelet/pod-resources" in text
    assert "drain and reboot the node" in text


def test_numbers_and_instances_are_there() -> None:
    text = Outline(html(SNAPSHOT, 1.0)).text
    for fact in ("94%", "30.5 / 140.4", "690 W", "56 °C", "89%", "3g.71gb"):
        assert fact in text


def rows(snapshot: Snapshot) -> list[str]:
    """The text of each row of the table's body, its cells divided by bars."""
    found = re.findall(r"<tr class[^>]*>(.*?)</tr>", html(snapshot, 1.0).decode())
    return [re.sub("<[^>]*>", "", row.replace("</td>", "|").replace("<br>", " ")) for row in found]


def test_a_container_has_its_share_use_power_and_method_below_its_card() -> None:
    (row,) = [row for row in rows(SNAPSHOT) if "llama-0" in row]
    assert row == (
        "|ml/llama-0/server StatefulSet llama · pid 424|50% share measured"
        "|78% (61–90), at least and at most 61 to 90 percent|20.0 / 70.0|512 W|||||1|"
    )


def test_a_container_stands_below_its_instance() -> None:
    names = [row.split("|")[1] for row in rows(SNAPSHOT)]
    place = [n for n, name in enumerate(names) if "3g.71gb" in name or "embed" in name or "1g.18gb" in name]
    assert place == list(range(place[0], place[0] + 3))
    assert "embed" in names[place[1]]


def test_who_uses_what_it_was_not_given_and_who_does_not_use_what_it_was_given_is_told() -> None:
    (sneaky,) = [row for row in rows(SNAPSHOT) if "notebook" in row]
    (idle,) = [row for row in rows(with_first(idle=True)) if "llama-0" in row]
    assert "|not given measured|" in sneaky
    assert "|50% share not in use|" in idle


def with_first(**facts: object) -> Snapshot:
    """The first card with its first tenant alone, changed."""
    tenant: Tenant = replace(BUSY.tenants[0], **facts)
    return replace(SNAPSHOT, cards=(replace(BUSY, tenants=(tenant,)),))


def test_an_idle_container_is_told_by_its_processes_as_far_as_they_can_be_seen() -> None:
    """The method stays with an account; whether it works now is another question."""
    unseen = replace(BUSY.tenants[0].booking, processes=None)
    for idle, words in ((True, " not in use|"), (None, " measured, unseen|"), (False, " measured|")):
        snapshot = with_first(processes=(), booking=unseen, idle=idle)
        assert [words in row for row in rows(snapshot) if "llama-0" in row] == [True]


def test_where_use_is_unknown_the_page_says_so_and_explains_the_word() -> None:
    (row,) = [row for row in rows(SNAPSHOT) if "dev-0" in row]
    assert "|14% share unseen|" in row and row.endswith("|-|")
    assert "unseen : it holds a share, but whether" in Outline(html(SNAPSHOT, 1.0)).text
    assert "unseen" not in Outline(html(with_first(), 1.0)).text


@pytest.mark.parametrize(("sees_all", "processes"), [(True, "13"), (False, "13+")])
def test_processes_that_may_have_been_missed_are_not_counted_as_all(sees_all: bool, processes: str) -> None:
    card = replace(BUSY, ability=replace(BUSY.ability, sees_all=sees_all))
    assert rows(replace(SNAPSHOT, cards=(card,)))[0].split("|")[-2] == processes
    empty = replace(card, tenants=(), rest=())
    assert rows(replace(SNAPSHOT, cards=(empty,)))[0].split("|")[-2] == ("0" if sees_all else "-")


def test_an_instance_has_no_count_while_a_process_could_be_on_any() -> None:
    counts = {row.split("|")[1][:11]: row.split("|")[-2] for row in rows(SNAPSHOT) if "|MIG " in row}
    assert counts == {"MIG 3g.71gb": "1+", "MIG 1g.18gb": "-"}


def test_a_process_that_has_just_ended_is_not_listed() -> None:
    gone = (Process(pid=424, sm_ratio=0.1),)
    assert not [row for row in rows(with_first(processes=gone)) if "424" in row]


def test_the_rest_is_told_by_reason_and_a_pod_that_ended_is_not() -> None:
    words = [row.split("|")[1].split(" ")[0] for row in rows(SNAPSHOT)]
    gpu_0 = words[words.index("NVIDIA") + 1 :]
    assert gpu_0[2:7] == ["idle", "overhead", "host", "other", "unknown"]
    assert sum("llama-0" in row for row in rows(SNAPSHOT)) == 1


def test_without_any_books_processes_are_still_shown() -> None:
    processes = [Process(pid=pid, kinds=("compute",)) for pid in range(424, 437)]
    unbooked = bare(Device(gpu=BUSY.gpu, readings=BUSY.readings, processes=tuple(processes)))
    (row,) = [row for row in rows(replace(SNAPSHOT, cards=(unbooked,))) if "pid 424" in row]
    assert row.startswith("|unknown ")
    assert row.endswith("|13|")


def test_what_is_down_stands_above_the_cards_and_what_works_below() -> None:
    text = Outline(html(SNAPSHOT, 1.0)).text
    order = [
        text.index(word) for word in ("podresources", "pods-api", "GPUs", "slot-7", "Parts", "apiserver")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize(("demo", "age", "banners"), [(False, 1.0, 0), (True, 1.0, 1), (True, 16.0, 2)])
def test_a_demo_and_stale_numbers_are_announced(demo: bool, age: float, banners: int) -> None:
    outline = Outline(html(replace(SNAPSHOT, demo=demo), age))
    assert (
        len([attrs for tag, attrs in outline.tags if (attrs.get("class") or "").startswith("banner")])
        == banners
    )
    assert ("DEMO" in outline.text) is demo


def test_the_links() -> None:
    links = [attrs["href"] for tag, attrs in Outline(html(SNAPSHOT, 1.0)).tags if tag == "a"]
    assert links == ["/metrics", "/api/v1/snapshot", "/-/healthy", "/-/ready"]


@given(SNAPSHOTS)
def test_any_snapshot_makes_a_well_formed_page(snapshot: Snapshot) -> None:
    Outline(html(snapshot, 1.0))


def test_a_part_that_is_up_never_says_that_it_never_worked() -> None:
    fresh = replace(SNAPSHOT, parts=(PartStatus(name="procfs", up=True),))
    assert "never worked" not in Outline(html(fresh, 1.0)).text
    broken = replace(SNAPSHOT, parts=(PartStatus(name="podresources", up=False),))
    assert "never worked" in Outline(html(broken, 1.0)).text


def test_the_page_says_of_what_time_its_numbers_are() -> None:
    words = "since the previous reading"
    assert words in Outline(html(SNAPSHOT, 1.0)).text
    assert words not in Outline(html(replace(SNAPSHOT, cards=()), 1.0)).text


def test_a_doubt_is_a_whisker_on_the_bar() -> None:
    bars = re.findall('<svg class="bar" aria-hidden="true">(.*?)</svg>', html(SNAPSHOT, 1.0).decode())
    (doubtful,) = [one for one in bars if one.startswith('<rect width="78%"/>')]
    assert '<line x1="61%" x2="90%" y1="2.5" y2="2.5"/>' in doubtful
    assert '<rect width="94%"/>' in bars, "the card's own is sure"
    assert "at least and at most" not in Outline(html(with_first(booking=EXACT), 1.0)).text


EXACT = replace(BUSY.tenants[0].booking, band=band(0.78))


def test_without_a_doubt_numbers_are_of_the_time_since_the_previous_reading() -> None:
    card, tenant, *_ = rows(with_first(booking=EXACT))
    assert (card.split("|")[3], tenant.split("|")[3]) == ("97%", "80%")


def test_use_of_a_slice_is_of_the_card_and_of_the_slice() -> None:
    found = {row.split("|")[1].split(" ")[0]: row.split("|")[3] for row in rows(SNAPSHOT)}
    assert found["ml/embed-5d8c7b9f4-qqqqq/main"] == "20%50% of its instance"
    assert [row.split("|")[3] for row in rows(SNAPSHOT) if "3g.71gb" in row] == ["50%"]


def test_host_processes_have_use_and_power() -> None:
    (row,) = [row for row in rows(SNAPSHOT) if row.startswith("|host processes")]
    assert row.split("|")[2:5] == ["4% (1–10), at least and at most 1 to 10 percent", "-", "85 W"]


@pytest.mark.parametrize(
    ("last", "held", "words"),
    [
        (SNAPSHOT.taken_at - 2400, None, "idle for 40 min"),
        (None, SNAPSHOT.taken_at - 2400, "idle for 40 min, no use was seen"),
        (None, SNAPSHOT.taken_at - 30, ""),
        (SNAPSHOT.taken_at - 5, SNAPSHOT.taken_at - 2400, ""),
        (None, None, ""),
    ],
)
def test_since_when_a_holder_is_idle(last: float | None, held: float | None, words: str) -> None:
    booking = replace(BUSY.tenants[0].booking, last_active_at=last)
    _, row, *_ = rows(with_first(booking=booking, held_since=held, processes=(), idle=True))
    assert row.split("|")[1] == " · ".join(filter(None, ("ml/llama-0/server StatefulSet llama", words)))


def test_nobody_is_called_idle_of_whom_nothing_is_known() -> None:
    unknown = Booking(bookable=False)
    _, row, *_ = rows(with_first(booking=unknown, held_since=1.0, processes=(), idle=None))
    assert "idle" not in row


def test_a_share_that_is_not_known_is_not_called_none() -> None:
    _, row, *_ = rows(with_first(booking=Booking(bookable=False)))
    assert row.split("|")[2] == "share not known"
