import sys
from argparse import ArgumentParser, Namespace
from functools import partial

from podgpu.cli._commands import add_output
from podgpu.cli._target import TARGET_OPTIONS, check_node, has_documents, open_target
from podgpu.cli._terminal import add_watch, columns, print_and_watch
from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.model import Cluster
from podgpu.numbers import duration

HELP = "Show how much of each GPU's memory is allocated to which pod."
OPTIONS = tuple(name for name in ALL if name in TARGET_OPTIONS or name.startswith("kube_"))

FAULTY = 1
PATIENCE_SECONDS = 30.0


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("node", nargs="?", metavar="[NODE]", help="only this node")
    parser.add_argument("-d", "--details", action="store_true", help="a line for each pod")
    parser.add_argument("--used", action="store_true", help="add what is really used, as agents measure it")
    add_output(parser, ("table", "json"))
    add_watch(parser)


def run(config: Config, arguments: Namespace) -> int:
    if not (arguments.used or arguments.watch or has_documents(config)):
        import asyncio

        return _show(arguments, asyncio.run(_allocations(config)))
    with open_target(config) as target:
        return print_and_watch(target, partial(_show, arguments), arguments)


def _show(arguments: Namespace, cluster: Cluster) -> int:
    from podgpu.views.cluster.card_memory import cluster_memory
    from podgpu.views.cluster.inspect import document, table

    if arguments.node:
        cluster = _only(cluster, arguments.node)
    found = cluster_memory(cluster)
    if arguments.output == "json":
        print(document(found))
    elif found.nodes or found.waiting:
        print(table(found, by_pod=arguments.details, with_use=arguments.used, width=columns()), end="")
    else:
        print("no node offers GPUs, and no pod asks for one", file=sys.stderr)
    return _print_faults(cluster)


async def _allocations(config: Config) -> Cluster:
    """Ask the API server alone, once."""
    import asyncio

    from podgpu import __version__
    from podgpu.assembly.api_server import check_access, open_cluster_api
    from podgpu.assembly.cluster import open_watch
    from podgpu.cluster.allocations import allocate
    from podgpu.supervise import Supervisor, end

    api = open_cluster_api(config)
    reader = open_watch(config, api)
    supervisor, running = Supervisor(), None
    try:
        await check_access(api)
        running = supervisor.supervise("inspect", partial(reader.run, supervisor))
        async with asyncio.timeout(PATIENCE_SECONDS):
            objects = await reader.complete()
        found = allocate(objects)
        return Cluster(
            taken_at=objects.at,
            version=__version__,
            nodes=tuple(found.nodes.values()),
            pending=found.pending,
            parts=supervisor.shown(reader.statuses()),
        )
    except TimeoutError:
        raise UserError(
            f"the API server has not answered within {duration(PATIENCE_SECONDS)}; try `kubectl get nodes`"
        ) from None
    finally:
        if running:
            await end(running)
        await reader.close()
        await api.close()


def _only(cluster: Cluster, name: str) -> Cluster:
    from msgspec.structs import replace

    check_node(cluster, name)
    return replace(cluster, nodes=tuple(node for node in cluster.nodes if node.name == name), pending=())


def _print_faults(cluster: Cluster) -> int:
    """Say on stderr what could not be read: the table may lack it."""
    from podgpu.insight.problem_kind import fault_words

    faults = [(part.name, part.fault) for part in cluster.parts if part.fault]
    for name, fault in faults:
        print(f"{name}: {fault_words(fault)}.", file=sys.stderr)
    return FAULTY if faults else 0
