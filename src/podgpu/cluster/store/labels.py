"""podgpu's own labels on a series, whoever scraped it."""

from collections.abc import Mapping

_MOVED = "exported_"


def own(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Undo what a scrape without `honor_labels` does: it renames labels that it has other values for.

    Without this, everything would be booked to the pod of the agent itself.
    """
    moved = {name.removeprefix(_MOVED): value for name, value in labels.items() if name.startswith(_MOVED)}
    return {**labels, **moved} if moved else labels
