"""A node's part of a page of metrics: ready lines by family. Pages are joined from the parts of all nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import Struct

from podgpu.views import exposition, series_filter
from podgpu.views.exposition import Format
from podgpu.views.series import Family
from podgpu.views.series_filter import FamilyQuery


class Part(Struct, frozen=True, gc=False):
    """Families without their samples, each with its lines."""

    families: tuple[tuple[Family, bytes], ...] = ()


def part(families: Sequence[Family], limit: int) -> Part:
    """Write the lines. Beyond the limit the least valuable families go: no node can fill the whole page."""
    fitting, _ = series_filter.fit(families, limit)
    written = ((family, exposition.lines(family)) for family in fitting)
    return Part(tuple((replace(family, samples={}), lines.encode()) for family, lines in written if lines))


def join(parts: Iterable[Part], form: Format, asked: FamilyQuery | None = None) -> bytes:
    """Families stand in the order in which they first appear; the first one's help and type count.

    `asked` is what the client wants of the page, if not all of it.
    """
    found: dict[str, tuple[Family, list[bytes]]] = {}
    for one in parts:
        for family, lines in one.families:
            if asked is not None and not asked.matches(family):
                continue
            kept = found.get(family.name)
            if kept is None:
                found[family.name] = (family, [lines])
            else:
                kept[1].append(lines)
    pieces: list[bytes] = []
    for family, lines_of_all in found.values():
        pieces.append(exposition.metadata(family, form).encode())
        pieces += lines_of_all
    return b"".join([*pieces, exposition.end(form)])
