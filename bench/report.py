"""Measures `podgpu report` over a month of many nodes, which a real VictoriaMetrics has.

The month is made up: a sample each five minutes, eight GPUs with a pod each on every node. Of ten nodes, one is
updated: its agent is back after a minute. Of a hundred, one has an agent that was off for six hours.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.e2e import victoria

NODES, DAYS, GPUS = 1000, 30, 8
INTERVAL = 300
VARIANTS = 10  # of restarts
DAY = 86_400


def template(node: str, start: int, seconds: int, off: tuple[int, int] | None) -> Iterator[str]:
    """Lines of VictoriaMetrics' JSON: the series of a node whose agent is off, from one time to another."""
    for gpu in range(GPUS):
        base = {"node": node, "gpu": str(gpu), "uuid": f"GPU-{node}-{gpu}", "job": "podgpu"}
        pod = {
            **base,
            "namespace": f"team-{gpu % 5}",
            "pod": f"pod-{node}-{gpu}",
            "container": "main",
            "mig": "",
        }
        yield line("podgpu_gpu_info", {**base, "model": "NVIDIA H200"}, start, seconds, off, None)
        yield line("podgpu_gpu_energy_joules_total", base, start, seconds, off, 500, is_meter=True)
        yield line("podgpu_gpu_booked_energy_joules_total", base, start, seconds, off, 500)
        yield line("podgpu_gpu_booked_busy_seconds_total", base, start, seconds, off, 0.75)
        for reason, watts, busy in (("idle", 100, 0), ("host", 20, 0.05)):
            labels = {**base, "reason": reason}
            yield line("podgpu_unattributed_energy_joules_total", labels, start, seconds, off, watts)
            yield line("podgpu_unattributed_busy_seconds_total", labels, start, seconds, off, busy)
        yield line("podgpu_container_allocated_seconds_total", pod, start, seconds, off, 1)
        yield line("podgpu_container_busy_seconds_total", pod, start, seconds, off, 0.7)
        yield line("podgpu_container_energy_joules_total", pod, start, seconds, off, 380)


def line(
    name: str,
    labels: dict[str, str],
    start: int,
    seconds: int,
    off: tuple[int, int] | None,
    rate: float | None,
    *,
    is_meter: bool = False,
) -> str:
    """`rate` is what a counter grows by in a second; None makes a gauge of 1."""
    times, values = [], []
    for at in range(-3600, seconds + 3600, INTERVAL):
        if off and off[0] <= at < off[1]:
            continue
        since = off[1] - 30 if off and at >= off[1] and not is_meter else -7200
        times.append((start + at) * 1000)
        values.append(1 if rate is None else round(rate * (at - since), 3))
    return json.dumps({"metric": {"__name__": name, **labels}, "values": values, "timestamps": times})


def fill(url: str, nodes: int, start: int, seconds: int) -> None:
    """Let the store encode a few nodes, and write what it exports under the names of all others."""
    for variant in range(VARIANTS + 2):
        name = f"v{variant:04}"
        at = DAY + (seconds - 2 * DAY) * variant // (VARIANTS + 1) // INTERVAL * INTERVAL
        off = {0: None, 1: (at, at + 6 * 3600)}.get(variant, (at, at + INTERVAL // 2 + 60))
        _post(f"{url}/api/v1/import", "\n".join(template(name, start, seconds, off)).encode())
    _get(f"{url}/internal/force_flush")
    pages = []
    for variant in range(VARIANTS + 2):
        chosen = urlencode({"match[]": f'{{node="v{variant:04}"}}'})
        pages.append(_get(f"{url}/api/v1/export/native?{chosen}&start={start - DAY}"))
        _get(f"{url}/api/v1/admin/tsdb/delete_series?{chosen}")
    for number in range(nodes):
        variant = 1 if number % 100 == 50 else 2 + number // 10 % VARIANTS if number % 10 == 5 else 0
        page = pages[variant].replace(f"v{variant:04}".encode(), f"n{number:04}".encode())
        _post(f"{url}/api/v1/import/native", page)
    _get(f"{url}/internal/force_flush")


def _post(url: str, body: bytes) -> None:
    with urlopen(Request(url, body, method="POST"), timeout=600):
        pass


def _get(url: str) -> bytes:
    with urlopen(url, timeout=600) as answer:
        found: bytes = answer.read()
        return found


def measured(url: str, start: int, seconds: int, prices: Path, *more: str) -> str:
    """Say what a report takes."""
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (start, start + seconds)]
    command = [sys.executable, "-m", "podgpu", "report", f"--prometheus.url={url}", f"--price={prices}"]
    command += [f"--from={times[0]}", f"--to={times[1]}", "--prometheus.timeout=120s", *more]
    begins, store_before = time.monotonic(), _of_the_store(url, "process_cpu_seconds_total")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took, processor = time.monotonic() - begins, usage.ru_utime + usage.ru_stime
    mebibytes, code = usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)
    store = _of_the_store(url, "process_cpu_seconds_total") - store_before
    most = _of_the_store(url, "process_resident_memory_peak_bytes") / 2**20
    own = f"{processor:.1f} s of its own processor time and {mebibytes:.0f} MiB at most"
    return f"{took:.1f} s, {own}, of the store {store:.0f} s and {most:.0f} MiB, exit code {code}"


def _of_the_store(url: str, metric: str) -> float:
    lines = _get(f"{url}/metrics").decode().splitlines()
    return next(float(each.split()[1]) for each in lines if each.startswith(f"{metric} "))


def main(nodes: int, days: int) -> None:
    seconds = days * DAY
    start = int(time.time()) // DAY * DAY - seconds - DAY
    with TemporaryDirectory() as folder:
        prices = Path(folder) / "prices.json"
        prices.write_text(json.dumps({"currency": "EUR", "gpu_hour": {"*": "3.50"}}))
        with victoria.victoria(Path(folder) / "store", memory="4GB") as url:
            begins = time.monotonic()
            fill(url, nodes, start, seconds)
            took = time.monotonic() - begins
            print(f"{nodes} nodes, {nodes * GPUS} GPUs, {days} days, written in {took:.0f} s", flush=True)
            for more in (("--by=namespace",), ("--by=pod", "-o", "json"), ("--by=namespace", "-o", "focus")):
                print(
                    f"podgpu report {' '.join(more)}: {measured(url, start, seconds, prices, *more)}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (NODES, DAYS))
