"""The pages of a node by path, each rendered at most once for a snapshot, when it is first asked for."""

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

from podgpu import log
from podgpu.errors import UserError
from podgpu.model import Snapshot, of_one
from podgpu.option import OptionsOf
from podgpu.option.value import NATIVE, did_you_mean
from podgpu.serve.http.request import Request
from podgpu.serve.traffic import TrafficCounter
from podgpu.views import exposition, json, native, page, series
from podgpu.views.cluster.json import slim as slimmed
from podgpu.views.dialects import PREFIX, Answers, Document, Families, TrafficFamilies, dialects, dialects_of
from podgpu.views.exposition import Format, page_format
from podgpu.views.rows_file import RowsQuery, rows_written
from podgpu.views.series import EVERYTHING, GROUPS, Family, FamilyQuery, SeriesFilter

HTML = "text/html; charset=utf-8"
_FASTEST = 1
_RAW_DEFLATE = -zlib.MAX_WBITS
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"
# A smaller response with a document is compressed for each request: that takes about a millisecond.
COMPRESSED_EACH_TIME = 64 * 1024
KEPT_COMPRESSED = 8
OWN = PREFIX + NATIVE
COLLECT, NAME = "collect[]", "name[]"

# The mapping says how many series were cut from all pages so far, by family.
MetricsView = Callable[[Snapshot, Mapping[str, int]], Sequence[Family]]
DocumentView = Callable[[Snapshot], Answers]


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """`more` follows the body. `mark` identifies the content, if the hash of the body does not."""

    body: bytes
    content_type: str
    gzipped: bool = False
    more: Sequence[bytes] = ()
    mark: str = ""

    @property
    def etag(self) -> str:
        """Identify these very bytes, within this process. Bytes keep their hash, so it is computed once."""
        return f'"{self.mark or format(hash(self.body), "x")}"'


class BodyPart:
    """A part of a body, compressed when that is first asked for.

    Compressed, it ends at a whole byte and refers to nothing before it, so it can stand anywhere in a stream.
    """

    def __init__(self, plain: bytes) -> None:
        self.plain = plain

    @cached_property
    def deflated(self) -> bytes:
        return deflated(self.plain)


def deflated(plain: bytes) -> bytes:
    compressor = zlib.compressobj(_FASTEST, zlib.DEFLATED, _RAW_DEFLATE)
    return compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH)


def inflated(part: bytes) -> bytes:
    """Return what `deflated` was given."""
    return zlib.decompressobj(_RAW_DEFLATE).decompress(part)


def gzip_stream(parts: Sequence[BodyPart]) -> list[bytes]:
    checksum, size = 0, 0
    for part in parts:
        checksum = zlib.crc32(part.plain, checksum)
        size += len(part.plain)
    return gzip_around((part.deflated for part in parts), checksum, size)


def gzip_around(parts: Iterable[bytes], checksum: int, size: int) -> list[bytes]:
    """Make a stream of deflated parts, by the checksum and the size of what they were made of."""
    end = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    return [_GZIP_HEAD, *parts, _LAST_BLOCK + end]


@dataclass(frozen=True, slots=True)
class PageRegistry:
    """A path `/metrics/NAME` makes NAME a dialect, which an address can be given.

    `whole` has what can be asked for by name, for pages that leave out some of it. `traffic` has what pages tell of
    how they were served.
    """

    pages: Mapping[str, MetricsView]
    documents: Mapping[str, DocumentView] = field(default_factory=dict)
    whole: Mapping[str, MetricsView] = field(default_factory=dict)
    traffic: Mapping[str, TrafficFamilies] = field(default_factory=dict)

    @property
    def dialects(self) -> list[str]:
        return dialects_of((*self.pages, *self.documents))


NATIVE_ALONE = PageRegistry({OWN: native.families})


class _Key(NamedTuple):
    kind: str
    variant: Format | int | None
    gzipped: bool


class NodePages:
    """Keeps what was rendered from the newest snapshot only."""

    def __init__(self, series_limit: int, registry: PageRegistry = NATIVE_ALONE) -> None:
        self.registry = registry
        self._series_limit = series_limit
        self._dropped: Counter[str] = Counter()
        self._cut: set[str] = set()
        self._snapshot: Snapshot | None = None
        self._pages: dict[_Key, RenderedPage] = {}
        self._families: dict[str, Sequence[Family]] = {}
        self._answers: dict[str, Answers] = {}
        self._compressed: dict[bytes, RenderedPage] = {}
        self._traffic = {path: TrafficCounter() for path in registry.traffic}

    def metrics(self, snapshot: Snapshot, path: str, form: Format, *, gzipped: bool) -> RenderedPage:
        key = _Key(path, form, gzipped and path not in self._traffic)
        page = self._page(snapshot, key, lambda: exposition.render(self._fitted(snapshot, path), form), form.value)
        if path not in self._traffic:
            return page
        told = RenderedPage(page.body + exposition.render(self._told(path), form), form.value)
        return compressed(told) if gzipped else told

    def count(self, path: str, body_bytes: int, seconds: float) -> None:
        """Count a request for a page that tells how it was served."""
        if counter := self._traffic.get(path):
            counter.add(body_bytes, seconds)

    def _told(self, path: str) -> Sequence[Family]:
        """What a page tells of the requests before this one."""
        counter = self._traffic.get(path)
        return self.registry.traffic[path](counter.state) if counter else ()

    def some(self, snapshot: Snapshot, path: str, asked: FamilyQuery, form: Format) -> bytes:
        """Render the families that a client asks for, also those that the page leaves out."""
        self._turn_to(snapshot)
        key = f"whole {path}"
        if key not in self._families:
            view = self.registry.whole.get(path) or self.registry.pages[path]
            self._families[key] = view(snapshot, dict(self._dropped))
        families = [family for family in (*self._families[key], *self._told(path)) if asked.matches(family)]
        return exposition.render(series.fit(families, self._series_limit)[0], form)

    def document(self, snapshot: Snapshot, path: str, query: Mapping[str, str], *, gzipped: bool) -> RenderedPage:
        """Answer a query of a document. Large answers are kept compressed: whole documents are asked for again."""
        self._turn_to(snapshot)
        if path not in self._answers:
            self._answers[path] = self.registry.documents[path](snapshot)
        plain = RenderedPage(self._answers[path](query), "application/json")
        if not gzipped:
            return plain
        if len(plain.body) <= COMPRESSED_EACH_TIME:
            return compressed(plain)
        if plain.body not in self._compressed and len(self._compressed) < KEPT_COMPRESSED:
            self._compressed[plain.body] = compressed(plain)
        return self._compressed.get(plain.body, plain)

    def json(self, snapshot: Snapshot, *, slim: bool = False, gzipped: bool) -> RenderedPage:
        key = _Key("slim" if slim else "json", None, gzipped)
        return self._page(
            snapshot, key, lambda: json.encode(slimmed(snapshot) if slim else snapshot), "application/json"
        )

    def rows(self, snapshot: Snapshot, query: RowsQuery, *, gzipped: bool) -> RenderedPage:
        key = _Key(f"rows {query.by} {query.form}", None, gzipped)
        return self._page(snapshot, key, lambda: rows_written(of_one(snapshot), query), query.content_type)

    def html(self, snapshot: Snapshot, age_seconds: int, *, gzipped: bool) -> RenderedPage:
        key = _Key("html", age_seconds, gzipped)
        return self._page(snapshot, key, lambda: page.html(snapshot, age_seconds), HTML)

    def _page(self, snapshot: Snapshot, key: _Key, body: Callable[[], bytes], content_type: str) -> RenderedPage:
        self._turn_to(snapshot)
        if key not in self._pages:
            if isinstance(key.variant, int):  # a status page shows its age, so there is another one every second
                self._pages = {
                    kept: page
                    for kept, page in self._pages.items()
                    if kept.kind != key.kind or kept.variant == key.variant
                }
            if key.gzipped:
                plain = self._page(snapshot, key._replace(gzipped=False), body, content_type)
                self._pages[key] = compressed(plain)
            else:
                self._pages[key] = RenderedPage(body(), content_type)
        return self._pages[key]

    def _turn_to(self, snapshot: Snapshot) -> None:
        # Held here, the old snapshot cannot give its identity to a new one.
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            for kept in (self._pages, self._families, self._answers, self._compressed):
                kept.clear()

    def _fitted(self, snapshot: Snapshot, path: str) -> Sequence[Family]:
        """Cut a page's families to the limit. The native page of the next snapshot says how much was cut."""
        if path not in self._families:
            families = self.registry.pages[path](snapshot, dict(self._dropped))
            self._families[path], dropped = series.fit(families, self._series_limit)
            self._dropped.update(dropped)
            # Few dialects can say so themselves, so the first cut of each page is logged.
            if dropped and path not in self._cut:
                self._cut.add(path)
                log.warning(
                    "series left out: the page outgrew --series.limit",
                    page=path,
                    limit=self._series_limit,
                    families=len(dropped),
                    series=sum(dropped.values()),
                )
        return self._families[path]


def compressed(plain: RenderedPage) -> RenderedPage:
    return RenderedPage(gzip.compress(plain.body, _FASTEST, mtime=0), plain.content_type, gzipped=True)


def register_pages(options: OptionsOf, choice: SeriesFilter = EVERYTHING) -> PageRegistry:
    """List everything this version can serve. Dialects follow only the names of `choice`."""
    pages: dict[str, MetricsView] = {OWN: partial(native.families, choice=choice)}
    whole: dict[str, MetricsView] = {OWN: partial(native.families, choice=replace(choice, detail=True))}
    documents: dict[str, DocumentView] = {}
    traffic: dict[str, TrafficFamilies] = {}
    for dialect in dialects():
        chosen = options(dialect.options) if dialect.options else None
        pages |= {path: _metrics(view, chosen, choice) for path, view in dialect.pages.items()}
        whole |= {path: _metrics(view, chosen, choice) for path, view in dialect.full_pages.items()}
        documents |= {path: _document(view, chosen) for path, view in dialect.documents.items()}
        if dialect.traffic:
            traffic |= dict.fromkeys(dialect.pages, _traffic(dialect.traffic, choice))
    return PageRegistry(pages, documents, whole, traffic)


def form_of(path: str, accept: str | None) -> Format:
    """Choose the format of a page. Dialects are text, as the originals are.

    In OpenMetrics their counters would have no type: few of their names end in `_total`.
    """
    return page_format(accept) if path == OWN else Format.TEXT


def asked(request: Request) -> FamilyQuery | None:
    """Read what a client asks for by `?collect[]=GROUP` and `?name[]=NAME`; None if it wants the page.

    Raises UserError. It is no error if a page has nothing of a group: one job can scrape several pages.
    """
    groups, names = request.every(COLLECT), request.every(NAME)
    for group in groups:
        if group not in GROUPS:
            advice = did_you_mean(group, GROUPS, f"choose from: {', '.join(GROUPS)}")
            raise UserError(f"there is no group {group!r}; {advice}")
    return FamilyQuery(frozenset(names), frozenset(groups)) if groups or names else None


def _metrics(view: Families, options: object, choice: SeriesFilter) -> MetricsView:
    return lambda snapshot, _dropped: choice.apply(view(snapshot, options))


def _traffic(view: TrafficFamilies, choice: SeriesFilter) -> TrafficFamilies:
    return lambda traffic: choice.apply(view(traffic))


def _document(view: Document, options: object) -> DocumentView:
    return lambda snapshot: view(snapshot, options)
