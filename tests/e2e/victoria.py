"""A real VictoriaMetrics that scrapes given targets, or takes samples of the past."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.e2e.rig import eventually, get, running
from tests.patience import PATIENCE
from tests.ports import quiet_port

PROGRAM = shutil.which("victoria-metrics")


@contextmanager
def victoria(folder: Path, scrape: dict[str, Any] | None = None, memory: str = "64MB") -> Iterator[str]:
    """Yield its address. `scrape` is a configuration in Prometheus' form."""
    assert PROGRAM
    folder.mkdir(exist_ok=True)
    file = folder / "scrape.yml"
    file.write_text(json.dumps(scrape or {"scrape_configs": []}))
    address = f"127.0.0.1:{quiet_port()}"
    arguments = [
        PROGRAM,
        f"-storageDataPath={folder / 'data'}",
        f"-promscrape.config={file}",
        f"-httpListenAddr={address}",
        "-retentionPeriod=1y",
        f"-memory.allowedBytes={memory}",
    ]
    with running(arguments, folder / "log"):
        url = f"http://{address}"
        eventually(lambda: _is_up(url))
        yield url


def keep(url: str, page: str) -> None:
    """Write samples of the past, in Prometheus' text format with times in milliseconds."""
    with urlopen(Request(f"{url}/api/v1/import/prometheus", page.encode(), method="POST"), timeout=PATIENCE):
        pass
    get(f"{url}/internal/force_flush")  # what was written can be read afterwards


def _is_up(url: str) -> bool:
    try:
        return get(f"{url}/health").status == HTTPStatus.OK
    except OSError:
        return False
