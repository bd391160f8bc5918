"""Pages, each rendered at most once for a snapshot, when it is first asked for."""

import gzip
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podgpu import log
from podgpu.model import Snapshot, of_one
from podgpu.serve.menu import NATIVE_ALONE, Menu
from podgpu.views import exposition, json, page, rows, series_filter
from podgpu.views.cluster.slim import slim as slimmed
from podgpu.views.dialects import Answers
from podgpu.views.exposition import Format
from podgpu.views.series import Family
from podgpu.views.series_filter import FamilyQuery

_FASTEST = 1
PACKED_EACH_TIME = 64 * 1024  # bytes; takes about a millisecond
KEPT_PACKED = 8


@dataclass(frozen=True, slots=True)
class Page:
    body: bytes
    content_type: str
    gzipped: bool = False

    @property
    def etag(self) -> str:
        """Name these very bytes. They keep their hash, so it is computed once; another process has other names."""
        return f'"{hash(self.body):x}"'


class _Key(NamedTuple):
    kind: str
    variant: Format | int | None
    gzipped: bool


class Pages:
    """Keeps what was rendered from the newest snapshot only."""

    def __init__(self, series_limit: int, menu: Menu = NATIVE_ALONE) -> None:
        self.menu = menu
        self._series_limit = series_limit
        self._dropped: Counter[str] = Counter()
        self._cut: set[str] = set()
        self._snapshot: Snapshot | None = None
        self._pages: dict[_Key, Page] = {}
        self._families: dict[str, Sequence[Family]] = {}
        self._answers: dict[str, Answers] = {}
        self._gzipped: dict[bytes, Page] = {}

    def metrics(self, snapshot: Snapshot, path: str, form: Format, *, gzipped: bool) -> Page:
        def render() -> Page:
            return Page(exposition.render(self._fitted(snapshot, path), form), form.value)

        return self._page(snapshot, _Key(path, form, gzipped), render)

    def some(self, snapshot: Snapshot, path: str, asked: FamilyQuery, form: Format, *, gzipped: bool) -> Page:
        """Render what a client asks for, for this request alone, also what the page leaves out."""
        self._turn_to(snapshot)
        key = f"whole {path}"
        if key not in self._families:
            view = self.menu.whole.get(path) or self.menu.pages[path]
            self._families[key] = view(snapshot, dict(self._dropped))
        found = [one for one in self._families[key] if asked.matches(one)]
        plain = Page(exposition.render(series_filter.fit(found, self._series_limit)[0], form), form.value)
        return _gzip(plain) if gzipped else plain

    def document(self, snapshot: Snapshot, path: str, query: Mapping[str, str], *, gzipped: bool) -> Page:
        """Find it among what is ready. A part of a document may be too large to be packed for this request alone."""
        self._turn_to(snapshot)
        if path not in self._answers:
            self._answers[path] = self.menu.documents[path](snapshot)
        plain = Page(self._answers[path](query), "application/json")
        return self._packed(plain) if gzipped else plain

    def json(self, snapshot: Snapshot, *, slim: bool = False, gzipped: bool) -> Page:
        def render() -> Page:
            return Page(json.encode(slimmed(snapshot) if slim else snapshot), "application/json")

        return self._page(snapshot, _Key("slim" if slim else "json", None, gzipped), render)

    def rows(self, snapshot: Snapshot, by: str, *, gzipped: bool) -> Page:
        def render() -> Page:
            return Page(rows.document(of_one(snapshot), by), "application/json")

        return self._page(snapshot, _Key(f"rows {by}", None, gzipped), render)

    def html(self, snapshot: Snapshot, age_seconds: int, *, gzipped: bool) -> Page:
        def render() -> Page:
            return Page(page.html(snapshot, age_seconds), "text/html; charset=utf-8")

        return self._page(snapshot, _Key("html", age_seconds, gzipped), render)

    def _page(self, snapshot: Snapshot, key: _Key, render: Callable[[], Page]) -> Page:
        self._turn_to(snapshot)
        if key not in self._pages:
            self._forget_older(key)
            if key.gzipped:
                self._pages[key] = _gzip(self._page(snapshot, key._replace(gzipped=False), render))
            else:
                self._pages[key] = render()
        return self._pages[key]

    def _packed(self, plain: Page) -> Page:
        """Keep the packed form of large bodies: those of whole documents come again, the same object each time."""
        if len(plain.body) <= PACKED_EACH_TIME:
            return _gzip(plain)
        if plain.body not in self._gzipped and len(self._gzipped) < KEPT_PACKED:
            self._gzipped[plain.body] = _gzip(plain)
        return self._gzipped.get(plain.body, plain)

    def _turn_to(self, snapshot: Snapshot) -> None:
        # Held here, the old snapshot cannot give its identity to a new one.
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._pages.clear()
            self._families.clear()
            self._answers.clear()
            self._gzipped.clear()

    def _forget_older(self, key: _Key) -> None:
        """Keep one status page: it shows its age, so there is another one every second."""
        if isinstance(key.variant, int):
            for other in [one for one in self._pages if one.kind == key.kind and one.variant != key.variant]:
                del self._pages[other]

    def _fitted(self, snapshot: Snapshot, path: str) -> Sequence[Family]:
        """Cut a page's families to the budget. The native page of the next snapshot says how much was cut."""
        if path not in self._families:
            families = self.menu.pages[path](snapshot, dict(self._dropped))
            self._families[path], dropped = series_filter.fit(families, self._series_limit)
            if dropped:
                self._count(path, dropped)
        return self._families[path]

    def _count(self, path: str, dropped: Mapping[str, int]) -> None:
        """Few dialects have room for a word about it, so the first cut of each page is logged."""
        self._dropped.update(dropped)
        if path not in self._cut:
            self._cut.add(path)
            log.warning(
                "series left out: the page outgrew --series.limit",
                page=path,
                limit=self._series_limit,
                families=len(dropped),
                series=sum(dropped.values()),
            )


def _gzip(plain: Page) -> Page:
    return Page(gzip.compress(plain.body, _FASTEST, mtime=0), plain.content_type, gzipped=True)
