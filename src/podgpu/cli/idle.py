import time
from argparse import ArgumentParser, Namespace
from functools import partial

from podgpu.assembly import insight_settings
from podgpu.cli._idle_table import idle_table
from podgpu.cli._output import add_selection, add_table_output, print_problems, print_sentences, print_table, selection
from podgpu.cli._target import TARGET_OPTIONS, open_target
from podgpu.cli._terminal import add_watch, print_and_watch
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.insight import InsightSettings, reconclude, settings_of
from podgpu.insight.idle import IdlePods, PlaceKey, candidates, idle_pods, with_last_use
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.numbers import count
from podgpu.option.times import seconds
from podgpu.views.format import unpriced_texts

HELP = "List who holds a GPU and does not use it, and what it costs."
OPTIONS = tuple(name for name in ALL if name in TARGET_OPTIONS or name == "price")

INCOMPLETE = 1
MAX_NAMED = 3


def arguments(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_table_output(parser)
    add_watch(parser)
    parser.add_argument(
        "--for",
        dest="least",
        metavar="DURATION",
        help="pods that have not used it for so long, such as 30m, 4h or 2d; default: as the agents judge",
    )


def run(config: Config, arguments: Namespace) -> int:
    least = None if arguments.least is None else seconds(arguments.least)
    chosen = selection(arguments)
    with open_target(config) as target:
        return print_and_watch(target, partial(_show, config, arguments, least, chosen), arguments)


def _show(config: Config, arguments: Namespace, least: float | None, chosen: PodSelection, cluster: Cluster) -> int:
    settings = _settings(config, least, cluster)
    cluster = reconclude(cluster, settings)
    last_use, problems = _remembered(config, cluster, chosen)
    if last_use:
        cluster = with_last_use(cluster, last_use, settings)
    found = idle_pods(cluster, chosen)
    currency = settings.prices.currency if settings.prices else ""
    print_table(idle_table(found, cluster, currency, arguments), arguments)
    print_sentences((row.text for row in found.waste), arguments)
    problems += _missing(found)
    print_problems(problems)
    return INCOMPLETE if problems else 0


def _settings(config: Config, least: float | None, cluster: Cluster) -> InsightSettings:
    """Take what the user asks for, or else what the agents or the cluster concluded with."""
    own = insight_settings(config)
    theirs = settings_of(cluster.insight) if cluster.insight else own
    return InsightSettings(idle_after=theirs.idle_after if least is None else least, prices=own.prices or theirs.prices)


def _missing(found: IdlePods) -> list[str]:
    texts = unpriced_texts(found.unpriced)
    if found.unknown:
        texts.append(
            f"of {count(found.unknown, 'more pod')} it is not known whether the GPU is used; see podgpu doctor"
        )
    if found.unread:
        names = ", ".join(found.unread[:MAX_NAMED]) + (" and others" if len(found.unread) > MAX_NAMED else "")
        texts.append(f"{count(len(found.unread), 'node')} could not be read: {names}; see podgpu top nodes")
    return texts


def _remembered(config: Config, cluster: Cluster, chosen: PodSelection) -> tuple[dict[PlaceKey, float], list[str]]:
    """Ask the store, if there is one, about those that seem idle. Raises UserError if it does not answer."""
    import asyncio

    from podgpu.cluster.store.client import Store
    from podgpu.cluster.store.options import StoreOptions
    from podgpu.cluster.store.pod_history import last_uses
    from podgpu.cluster.store.response import StoreFault

    options = config.of(StoreOptions)
    seem_idle = candidates(cluster, chosen)
    if options.url is None or not seem_idle:
        return {}, []

    async def ask() -> tuple[dict[PlaceKey, float], list[str]]:
        store, now = Store(options), time.time()
        try:
            oldest = min(seem_idle.values())
            found = await last_uses(store, {place.pod for place in seem_idle}, now - oldest, now)
        except StoreFault as fault:
            raise UserError(f"{fault.reason}: {fault.detail}; docs/report.md says what to do") from None
        finally:
            await store.close()
        notices = [f"{fault.reason}: {fault.detail}" for fault in sorted(store.notices)]
        return found, notices

    return asyncio.run(ask())
