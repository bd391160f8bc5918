"""What can be asked for: pages of metrics and JSON documents, by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from podgpu.config import Config
from podgpu.config.address import NATIVE
from podgpu.model import Snapshot
from podgpu.views import native
from podgpu.views.dialects import Document, Families, dialects
from podgpu.views.family import Family

PREFIX = "/metrics/"

# The mapping tells how many series were cut from all pages so far, by family.
MetricsView = Callable[[Snapshot, Mapping[str, int]], Sequence[Family]]
DocumentView = Callable[[Snapshot, Mapping[str, str]], bytes]


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


def menu(config: Config) -> Menu:
    """List everything this version can serve, as the configuration wants it."""
    spoken = dialects()
    own = partial(native.families, processes=config.series_processes == "on")
    return Menu(
        {PREFIX + NATIVE: own}
        | {path: _metrics(view, config) for one in spoken for path, view in one.PAGES.items()},
        {path: _document(view, config) for one in spoken for path, view in one.DOCUMENTS.items()},
    )


def _metrics(view: Families, config: Config) -> MetricsView:
    return lambda snapshot, _dropped: view(snapshot, config)


def _document(view: Document, config: Config) -> DocumentView:
    return lambda snapshot, query: view(snapshot, config, query)
