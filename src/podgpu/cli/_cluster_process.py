"""Runs the reader of a cluster as a process."""

import asyncio
from contextlib import ExitStack
from functools import partial

from podgpu import __version__, log
from podgpu.assembly.cluster import open_cluster
from podgpu.assembly.server import open_cluster_history, open_cluster_pages, open_guard, stored_moment, stored_timeline
from podgpu.cli._process import (
    FEWER_GC_OBJECTS,
    Signals,
    allow_connections,
    answer_promptly,
    close_all,
    save_memory,
    until_stopped,
)
from podgpu.config import Config
from podgpu.serve.cluster.server import ClusterServer
from podgpu.supervise import Work, brief, end


def serve_cluster(config: Config) -> int:
    """Run until SIGTERM or SIGINT."""
    save_memory(FEWER_GC_OBJECTS)
    answer_promptly()
    allow_connections()
    with ExitStack() as at_exit:
        return asyncio.run(_serve(config, at_exit))


async def _serve(config: Config, at_exit: ExitStack) -> int:
    cluster = open_cluster(config)
    await cluster.check()
    past, feed = open_cluster_history(config), cluster.loop
    works: list[tuple[str, Work]] = [("history", partial(past.follow, feed.cluster, feed.changed))] if past else []
    keeping = brief(feed.supervisor.run(works))
    server = ClusterServer(
        cluster.loop,
        open_cluster_pages(config),
        max_requests=config.web_max_requests,
        max_connections=config.web_max_connections,
        max_streams=config.web_max_streams,
        history=cluster.history,
        past=past,
        stored=partial(stored_timeline, cluster.history) if cluster.history else None,
        stored_moment=partial(stored_moment, cluster.moments) if cluster.moments else None,
        bills=cluster.bills,
        fits=cluster.fits,
        guard=open_guard(config),
        supervisor=cluster.loop.supervisor,
    )
    signals = Signals(at_exit)
    try:
        await server.start(config.web_listen_address, config.web_probe_address)
        log.info("listening", version=__version__, addresses=",".join(map(str, server.addresses)))
        return await until_stopped(signals, cluster.running)
    finally:
        await end(keeping)
        await close_all(server.stop, cluster.close, "reader")
