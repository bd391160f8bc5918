"""What can be asked for: pages of metrics and JSON documents, by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from podgpu.errors import UserError
from podgpu.model import Snapshot
from podgpu.option import OptionsOf
from podgpu.option.value import NATIVE, did_you_mean
from podgpu.serve.http.request import Request
from podgpu.views import native
from podgpu.views.dialects import PREFIX, Answers, Document, Families, dialects
from podgpu.views.exposition import Format, page_format
from podgpu.views.series import EVERYTHING, GROUPS, Family, FamilyQuery, SeriesFilter

# The mapping says how many series were cut from all pages so far, by family.
MetricsView = Callable[[Snapshot, Mapping[str, int]], Sequence[Family]]
DocumentView = Callable[[Snapshot], Answers]


def form_of(path: str, accept: str | None) -> Format:
    """Choose the format of a page. Other systems' pages are text, as theirs were.

    In OpenMetrics their counters would have no type: few of their names end in `_total`.
    """
    return page_format(accept) if path == OWN else Format.TEXT


@dataclass(frozen=True, slots=True)
class PageRegistry:
    """A path `/metrics/NAME` makes NAME a dialect, which an address can be given."""

    pages: Mapping[str, MetricsView]
    documents: Mapping[str, DocumentView] = field(default_factory=dict)
    # Pages with all that can be asked for by name, where the page itself has less.
    whole: Mapping[str, MetricsView] = field(default_factory=dict)

    @property
    def dialects(self) -> list[str]:
        return dialects_of((*self.pages, *self.documents))


OWN = PREFIX + NATIVE
COLLECT, NAME = "collect[]", "name[]"
NATIVE_ALONE = PageRegistry({OWN: native.families})


def register_pages(options: OptionsOf, choice: SeriesFilter = EVERYTHING) -> PageRegistry:
    """List everything this version can serve. Of `choice`, dialects heed only the names."""
    pages: dict[str, MetricsView] = {OWN: partial(native.families, choice=choice)}
    whole: dict[str, MetricsView] = {OWN: partial(native.families, choice=replace(choice, detail=True))}
    documents: dict[str, DocumentView] = {}
    for dialect in dialects():
        chosen = options(dialect.options) if dialect.options else None
        pages |= {path: _metrics(view, chosen, choice) for path, view in dialect.pages.items()}
        whole |= {path: _metrics(view, chosen, choice) for path, view in dialect.full_pages.items()}
        documents |= {path: _document(view, chosen) for path, view in dialect.documents.items()}
    return PageRegistry(pages, documents, whole)


def dialects_of(paths: Sequence[str]) -> list[str]:
    return sorted(path.removeprefix(PREFIX) for path in paths if path.startswith(PREFIX))


def asked(request: Request) -> FamilyQuery | None:
    """Read what a client asks for by `?collect[]=GROUP` and `?name[]=NAME`; None if it wants the page.

    Raises UserError. A group that a page has nothing of is no mistake: one job can scrape several pages.
    """
    groups, names = request.every(COLLECT), request.every(NAME)
    for group in groups:
        if group not in GROUPS:
            advice = did_you_mean(group, GROUPS, f"choose from: {', '.join(GROUPS)}")
            raise UserError(f"there is no group {group!r}; {advice}")
    return FamilyQuery(frozenset(names), frozenset(groups)) if groups or names else None


def _metrics(view: Families, options: object, choice: SeriesFilter) -> MetricsView:
    return lambda snapshot, _dropped: choice.apply(view(snapshot, options))


def _document(view: Document, options: object) -> DocumentView:
    return lambda snapshot: view(snapshot, options)
