"""Opens a recording in place of an agent."""

from msgspec.structs import replace

from podgpu.agent.playback import Playback
from podgpu.assembly.source import chosen
from podgpu.assembly.terms import open_terms
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.insight import Terms, conclude
from podgpu.model import Snapshot
from podgpu.views.cluster import json


def open_playback(config: Config) -> Playback | None:
    """Return None unless the chosen source is a recording. Of several nodes, --node-name says which is meant."""
    play = chosen(config).play
    if play is None:
        return None

    terms = open_terms(config)

    def take(document: bytes) -> Snapshot:
        return _of_node(document, config.node_name, terms)

    return Playback(play(config.of), take)


def _of_node(document: bytes, wanted: str | None, terms: Terms) -> Snapshot:
    found = {one.name: one.snapshot for one in json.decode(document).nodes if one.snapshot}
    if wanted is None and len(found) == 1:
        (snapshot,) = found.values()
    elif wanted in found:
        snapshot = found[wanted]
    else:
        names = ", ".join(sorted(found)[:5]) or "none at this moment"
        raise UserError(f"the recording has these nodes: {names}; choose one with --node-name")
    return replace(
        snapshot if snapshot.insight else conclude(snapshot, terms, has_books=False), replayed=True
    )
