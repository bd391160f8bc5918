"""A real Prometheus that scrapes given targets every second, and deletes its data at the end."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.e2e.rig import eventually, get, logged, running

PROGRAM = shutil.which("prometheus")

# What Prometheus adds to each target's own series.
OWN = "up|scrape_.*"
LATEST_SECONDS = 3  # a scrape that began earlier is over

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """A page to scrape. Prometheus asks for OpenMetrics; with `as_text` that request is hidden from the server."""

    name: str
    url: str
    as_text: bool = False

    def configuration(self, proxy: str) -> dict[str, Any]:
        place = urlsplit(self.url)
        way = {"proxy_url": proxy} if self.as_text else {}
        targets = [{"targets": [place.netloc]}]
        return {"job_name": self.name, "metrics_path": place.path, "static_configs": targets, **way}


@dataclass(frozen=True)
class Prometheus:
    """It is asked for what is now, unless it has a time of its own."""

    url: str
    log: Path
    at: float | None = None

    def when(self, *expressions: str) -> "Prometheus":
        """The same, as of a moment at which all these had an answer.

        A scrape that fails takes the series of its target away until the next one. What was a moment ago stays so.
        """

        def look() -> Prometheus | None:
            moment = replace(self, at=time.time() - LATEST_SECONDS)
            return moment if all(map(moment.query, expressions)) else None

        found = eventually(look)
        assert found, expressions
        return found

    def targets(self) -> dict[str, dict[str, Any]]:
        """Return the health of each target, by job."""
        targets = self._ask("targets", state="active")["activeTargets"]
        return {target["labels"]["job"]: target for target in targets}

    def query(self, expression: str, at: float | None = None) -> list[tuple[Labels, float]]:
        """What it answers, now or for a time in the past."""
        at = at or self.at
        when = {} if at is None else {"time": str(at)}
        found = self._ask("query", query=expression, **when)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def types(self, metric: str) -> dict[str, str]:
        """The type that each job's page gives the metric."""
        entries = self._ask("targets/metadata", metric=metric)
        return {entry["target"]["job"]: entry["type"] for entry in entries}

    def rule_faults(self) -> dict[str, str]:
        """Why each rule could not be evaluated, nothing if it could."""
        groups = self._ask("rules")["groups"]
        return {rule["name"]: rule.get("lastError", "") for group in groups for rule in group["rules"]}

    def by_job(self, expression: str) -> dict[str, float]:
        return {labels["job"]: value for labels, value in self.query(expression)}

    def _ask(self, what: str, **parameters: str) -> Any:
        answer = get(f"{self.url}/api/v1/{what}?{urlencode(parameters)}").json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def prometheus(jobs: Iterable[Job], folder: Path, rules: Iterable[Path] = ()) -> Iterator[Prometheus]:
    with _without_wishes() as proxy:
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [job.configuration(proxy) for job in jobs],
        }
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(configuration))  # JSON is YAML too
        with started(file, folder) as here:
            yield here


@contextmanager
def started(configuration: Path, folder: Path) -> Iterator[Prometheus]:
    assert PROGRAM
    log = folder / "prometheus.log"
    arguments = [
        PROGRAM,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=1y",
        "--web.listen-address=127.0.0.1:0",
        "--log.level=debug",  # single series that were dropped are told there alone
    ]
    with running(arguments, log):
        address = logged(log, r"Listening on.* address=(127\.0\.0\.1:\d+)")
        # It listens before it has read its rules, and refuses queries until then.
        eventually(lambda: get(f"http://{address}/-/ready").status == HTTPStatus.OK)
        yield Prometheus(f"http://{address}", log)


def keep(lines: Iterable[str], folder: Path) -> None:
    """Write samples of the past, in Prometheus' text format with times in milliseconds, before it starts."""
    families: dict[str, list[str]] = {}
    for line in lines:
        sample, _, milliseconds = line.rpartition(" ")
        families.setdefault(line.partition("{")[0], []).append(f"{sample} {int(milliseconds) // 1000}")
    page = [
        "\n".join([f"# TYPE {name.removesuffix('_total')} {_kind(name)}", *samples])
        for name, samples in families.items()
    ]
    file = folder / "past.txt"
    file.write_text("\n".join([*page, "# EOF\n"]))
    make = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=64h"]
    subprocess.run([*make, str(file), str(folder / "data")], check=True, capture_output=True)


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


class _Forwarder(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = get(self.path)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _without_wishes() -> Iterator[str]:
    """Run a proxy that passes requests on without the format that they ask for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forwarder) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
