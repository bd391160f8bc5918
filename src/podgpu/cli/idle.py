import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial

from podgpu.assembly import insight_settings
from podgpu.cli._commands import argument_type
from podgpu.cli._idle_table import idle_table
from podgpu.cli._output import add_selection, add_table_output, print_problems, print_sentences, print_table, selection
from podgpu.cli._target import TARGET_OPTIONS, check_node, open_target
from podgpu.cli._terminal import add_watch, print_and_watch
from podgpu.cluster.store.options import StoreOptions
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.insight import InsightSettings, reconclude, settings_of
from podgpu.insight.idle import IdlePods, PlaceKey, candidates, idle_pods, with_last_use
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.numbers import count, duration
from podgpu.option.value import seconds
from podgpu.views.format import unpriced_texts
from podgpu.views.text import line

HELP = "List who holds a GPU and does not use it, and what it costs."
OPTIONS = tuple(name for name in ALL if name in TARGET_OPTIONS or name == "price")

INCOMPLETE = 1
MAX_NAMED = 3
OLD_SECONDS = 60.0  # clocks may differ by less


def arguments(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_table_output(parser)
    add_watch(parser)
    parser.add_argument(
        "--for",
        dest="least",
        metavar="DURATION",
        type=argument_type(seconds),
        help="only pods that have not used their GPU for so long, such as 30m, 4h or 2d; default: as the agents judge",
    )


def run(config: Config, arguments: Namespace) -> int:
    chosen = selection(arguments)
    with open_target(config) as target:
        check_node(target.cluster, chosen.node)
        return print_and_watch(target, partial(_show, config, arguments, chosen), arguments)


def _show(config: Config, arguments: Namespace, chosen: PodSelection, cluster: Cluster) -> int:
    settings = _settings(config, arguments.least, cluster)
    cluster = reconclude(cluster, settings)
    last_use, problems = _stored_last_uses(config, cluster, chosen)
    if last_use:
        cluster = with_last_use(cluster, last_use, settings)
    found = idle_pods(cluster, chosen)
    currency = settings.prices.currency if settings.prices else ""
    print_table(idle_table(found, cluster, currency, arguments), arguments)
    print_sentences((row.text for row in found.waste), arguments)
    problems += [*_missing(found, cluster), *_aged(cluster)]
    print_problems(problems)
    return INCOMPLETE if problems else 0


def _settings(config: Config, least: float | None, cluster: Cluster) -> InsightSettings:
    """Take the user's settings, or else those that the agents or the cluster concluded with."""
    own = insight_settings(config)
    theirs = settings_of(cluster.insight) if cluster.insight else own
    return InsightSettings(idle_after=theirs.idle_after if least is None else least, prices=own.prices or theirs.prices)


def _aged(cluster: Cluster) -> list[str]:
    """An agent or a server that has stopped may still be answered for, by a cache or by somebody else."""
    age = time.time() - cluster.taken_at
    if cluster.replayed or age <= max(OLD_SECONDS, 3 * cluster.interval_seconds):
        return []
    return [f"the numbers are {duration(age)} old, or the clocks differ; see podgpu doctor"]


def _missing(found: IdlePods, cluster: Cluster) -> list[str]:
    texts = unpriced_texts(found.unpriced)
    down = [part.name for part in cluster.parts if not part.up]
    if down and not cluster.nodes:
        texts.append(f"no node was seen, since {_few(down)} does not work; see podgpu doctor")
    if found.unknown:
        texts.append(f"the GPU use of {count(found.unknown, 'more pod')} is not known; see podgpu doctor")
    if found.unread:
        texts.append(
            f"{count(len(found.unread), 'node')} could not be read: {_few(found.unread)}; see podgpu top nodes"
        )
    if found.unseen:
        nodes = f"{count(len(found.unseen), 'node')} ({_few(found.unseen)})"
        texts.append(f"who holds the GPUs of {nodes} is not known; see podgpu doctor")
    return texts


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(line, names[:MAX_NAMED])) + (" and others" if len(names) > MAX_NAMED else "")


def _stored_last_uses(
    config: Config, cluster: Cluster, chosen: PodSelection
) -> tuple[dict[PlaceKey, float], list[str]]:
    """Ask the store, if there is one, when those that seem idle last used their GPU.

    Returns its warnings too. Raises UserError if it does not answer.
    """
    from podgpu.cli._store import ask_store
    from podgpu.cluster.store.client import Store
    from podgpu.cluster.store.pod_history import last_uses

    seem_idle = candidates(cluster, chosen)
    if config.of(StoreOptions).url is None or not seem_idle:
        return {}, []

    async def ask(store: Store) -> tuple[dict[PlaceKey, float], list[str]]:
        now, oldest = time.time(), min(seem_idle.values())
        found = await last_uses(store, {place.pod for place in seem_idle}, now - oldest, now)
        return found, [f"{notice.reason}: {notice.detail}" for notice in sorted(store.notices)]

    return ask_store(config, ask, whole=False)
