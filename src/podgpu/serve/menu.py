"""What can be asked for: pages of metrics and JSON documents, by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from podgpu.model import Snapshot
from podgpu.option import OptionsOf
from podgpu.option.address import NATIVE
from podgpu.views import native
from podgpu.views.dialects import Answers, Dialect, Document, Families, dialects, options_class
from podgpu.views.exposition import Format
from podgpu.views.negotiate import page_format
from podgpu.views.series import Family

PREFIX = "/metrics/"

# The mapping tells how many series were cut from all pages so far, by family.
MetricsView = Callable[[Snapshot, Mapping[str, int]], Sequence[Family]]
DocumentView = Callable[[Snapshot], Answers]


def form_of(path: str, accept: str | None) -> Format:
    """Choose the format of a page. Other systems' pages are text, as theirs were.

    In OpenMetrics their counters would have no type: few of their names end in `_total`.
    """
    return page_format(accept) if path == PREFIX + NATIVE else Format.TEXT


@dataclass(frozen=True, slots=True)
class Menu:
    """A path `/metrics/NAME` makes NAME a dialect, which an address can be given."""

    pages: Mapping[str, MetricsView]
    documents: Mapping[str, DocumentView] = field(default_factory=dict)

    @property
    def dialects(self) -> list[str]:
        paths = (*self.pages, *self.documents)
        return sorted(path.removeprefix(PREFIX) for path in paths if path.startswith(PREFIX))


NATIVE_ALONE = Menu({PREFIX + NATIVE: native.families})


def menu(options: OptionsOf, *, processes: bool = False) -> Menu:
    """List everything this version can serve. `processes` get series of their own on the native page."""
    pages: dict[str, MetricsView] = {PREFIX + NATIVE: partial(native.families, processes=processes)}
    documents: dict[str, DocumentView] = {}
    for dialect in dialects():
        chosen = _chosen(dialect, options)
        pages |= {path: _metrics(view, chosen) for path, view in dialect.PAGES.items()}
        documents |= {path: _document(view, chosen) for path, view in dialect.DOCUMENTS.items()}
    return Menu(pages, documents)


def _chosen(dialect: Dialect, options: OptionsOf) -> object:
    section = options_class(dialect)
    return options(section) if section else None


def _metrics(view: Families, options: object) -> MetricsView:
    return lambda snapshot, _dropped: view(snapshot, options)


def _document(view: Document, options: object) -> DocumentView:
    return lambda snapshot: view(snapshot, options)
