"""`python -m tests.e2e.asked.defaults`: what people's queries get from a page of shared cards, by how it names pods.

A real Prometheus scrapes three pages made of one reading of the demo, and answers expressions that people use. It is
the same reading each time: a figure may depend on how busy the cards are.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import msgspec

from podgpu.config.precedence import load
from podgpu.model import Card, Snapshot, Tenant
from podgpu.views.dialects import dcgm
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.exposition import Format, render
from podgpu.views.series import Family
from tests.catalog.dcgm import DEFAULT_COUNTERS
from tests.e2e.asked.expressions import CONSOLE, DASHBOARD
from tests.e2e.prometheus import Prometheus, started
from tests.e2e.rig import eventually
from tests.sources.simulator.test_booking import played

NOBODY, ARBITRARY, EACH = "nobody", "an arbitrary pod", "each container"
FIELD = re.compile(r"(DCGM_\w+)(\{)?")
# What NVIDIA's dashboard, OpenShift's console, and alerts and panels of capacity ask about cards.
ABOUT_CARDS = (
    *(
        text
        for text in (*DASHBOARD, *CONSOLE)
        if "exported_pod" not in text and all(name in DEFAULT_COUNTERS for name, _ in FIELD.findall(text))
    ),
    "count(DCGM_FI_DEV_GPU_TEMP)",
    "sum(DCGM_FI_DEV_FB_FREE)",
    "DCGM_FI_DEV_GPU_UTIL > 50",
    "max by (UUID) (DCGM_FI_DEV_FB_USED)",
    "sum(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION)",
)
OPENCOST = 'avg(avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{container!=""}[2m])) by (container, pod, namespace)'
LAST = "DCGM_FI_PROF_DRAM_ACTIVE"  # near the end of the page: once it is stored, all before it are
KEDA = 'avg(DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}) by (pod)'


@dataclass(frozen=True)
class Score:
    """Of one page: pods that OpenCost finds, pods on shared cards that KEDA finds, and right answers about cards.

    Right is what a page with one row for each card gives.
    """

    opencost: int
    keda_on_shared: int
    about_cards: int


def pages(snapshot: Snapshot) -> dict[str, str]:
    off, on = (load({"dcgm_per_container": [text]}, {}).of(DcgmPageOptions) for text in ("off", "on"))
    whole, split = dcgm.families(snapshot, off), dcgm.families(snapshot, on)
    one_each = msgspec.structs.replace(snapshot, cards=tuple(map(_of_last_pod, snapshot.cards)))
    return {
        NOBODY: _page(whole),
        ARBITRARY: _page(dcgm.families(one_each, off)),
        EACH: _page(split),
    }


def _page(families: list[Family]) -> str:
    return render(families, Format.TEXT).decode()


def _of_last_pod(card: Card) -> Card:
    """As if only the pod that is listed last had been given each device."""
    last: dict[str, str] = {tenant.mig: tenant.container.pod for tenant in card.tenants if tenant.claims}

    def keeps(tenant: Tenant) -> bool:
        return tenant.container.pod == last.get(tenant.mig)

    return msgspec.structs.replace(card, tenants=tuple(filter(keeps, card.tenants)))


def scores(snapshot: Snapshot, folder: Path) -> dict[str, Score]:
    written = pages(snapshot)
    holders = {
        (tenant.container.pod, card.gpu.uuid, tenant.mig)
        for card in snapshot.cards
        for tenant in card.tenants
        if tenant.claims
    }
    devices = [(uuid, mig) for _, uuid, mig in holders]
    shared = {pod for pod, uuid, mig in holders if devices.count((uuid, mig)) > 1}
    with _served(written) as (port, paths), _prometheus(port, paths, folder) as scraper:

        def ask(text: str, name: str) -> list[tuple[Mapping[str, str], float]]:
            return scraper.query(_of(text, paths[name]))

        for name in written:
            eventually(lambda name=name: ask(LAST, name))  # type: ignore[misc]
        truth = {text: sorted(value for _, value in ask(text, NOBODY)) for text in ABOUT_CARDS}
        return {
            name: Score(
                opencost=len({labels["pod"] for labels, _ in ask(OPENCOST, name)}),
                keda_on_shared=len({labels["pod"] for labels, _ in ask(KEDA, name)} & shared),
                about_cards=sum(_same(ask(text, name), truth[text]) for text in ABOUT_CARDS),
            )
            for name in written
        }


def _same(found: list[tuple[Mapping[str, str], float]], truth: list[float]) -> bool:
    values = sorted(value for _, value in found)
    return len(values) == len(truth) and all(
        abs(value - expected) < 0.02 * max(1.0, abs(expected)) for value, expected in zip(values, truth, strict=True)
    )


def _of(text: str, job: str) -> str:
    """The same of one job alone."""
    return FIELD.sub(lambda found: f'{found[1]}{{job="{job}"' + ("," if found[2] else "}"), text)


@contextmanager
def _served(written: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    paths = {name: f"page{number}" for number, name in enumerate(written)}
    bodies = {f"/{path}": written[name].encode() for name, path in paths.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", Format.TEXT.value)
            self.end_headers()
            self.wfile.write(bodies[self.path])

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, paths
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _prometheus(port: int, paths: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    jobs = [
        {
            "job_name": path,
            "metrics_path": f"/{path}",
            "honor_labels": True,
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        for path in paths.values()
    ]
    file = folder / "prometheus.yml"
    file.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    with started(file, folder) as scraper:
        yield scraper


async def _third_snapshot() -> Snapshot:
    """What a container draws takes two readings."""
    snapshots = [snapshot async for snapshot in played(1.0)]
    return snapshots[2]


def measured(folder: Path) -> dict[str, Score]:
    return scores(asyncio.run(_third_snapshot()), folder)


def main() -> None:
    with TemporaryDirectory() as place:
        for name, score in measured(Path(place)).items():
            print(f"{name:20}{score}")


if __name__ == "__main__":
    main()
