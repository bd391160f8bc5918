"""Reports from stores that answer as Thanos, Mimir and a cluster of VictoriaMetrics do, over a real socket."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podgpu.cli.main import main
from podgpu.views.text import width_of
from tests.cluster.store.stub import StubStore, error, matrix, serving, vector

CARD = {"node": "gpu-1", "gpu": "0", "uuid": "GPU-1"}
POD = {**CARD, "namespace": "ml", "pod": "train", "container": "main"}
COUNTERS = {
    "podgpu_container_allocated_seconds_total": POD,
    "podgpu_container_busy_seconds_total": POD,
    "podgpu_container_energy_joules_total": POD,
    "podgpu_gpu_booked_busy_seconds_total": CARD,
    "podgpu_gpu_booked_energy_joules_total": CARD,
}
START = datetime(2026, 11, 1, 10, tzinfo=UTC).timestamp()
WARNING = "receive series from Addr: 10.0.0.7:10901: rpc error: code = Unavailable desc = connection refused"


class OneHour(StubStore):
    """One GPU that is there throughout, and a pod that has it and uses it: every counter grows by 3,600."""

    at = 0.0  # of the question

    def about(self, query: str) -> Any:
        if query.endswith(("]", "] offset -1ms")):
            return matrix()
        if "podgpu_gpu_info" in query:
            # It is scraped each 30 s, and a window is asked about with the ten minutes before it.
            found = {"timestamp": str(self.at), "count_over_time": "140"}.get(query.partition("(")[0], "1")
            return vector(({**CARD, "model": "NVIDIA H200"}, found))
        metric = next((counter for counter in COUNTERS if counter in query), None)
        if metric is None or query.startswith("resets") or " unless " in query:
            return vector()
        return vector((COUNTERS[metric], "1000" if self.at == START else "4600"))

    async def handle(self, request: web.BaseRequest) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        self.at = float(form["time"])
        self.seen.append(request)
        return self.reply(request, form)

    def reply(self, _request: web.BaseRequest, form: dict[str, str]) -> web.Response:
        return web.json_response(self.about(form["query"]))


class Thanos(OneHour):
    """One of its stores is down."""

    def reply(self, _request: web.BaseRequest, form: dict[str, str]) -> web.Response:
        if form.get("partial_response") == "false":
            return web.json_response(error("execution", f"expanding series: {WARNING}"), status=422)
        return web.json_response({**self.about(form["query"]), "warnings": [WARNING]})


class OldThanos(OneHour):
    """It does not know how to refuse."""

    def reply(self, _request: web.BaseRequest, form: dict[str, str]) -> web.Response:
        return web.json_response({**self.about(form["query"]), "warnings": [WARNING]})


class Victoria(OneHour):
    def reply(self, _request: web.BaseRequest, form: dict[str, str]) -> web.Response:
        if form.get("deny_partial_response") == "1":
            words = "cannot fetch query results from vmstorage nodes: 1 of 3 is unavailable"
            return web.json_response(error("503", words), status=503)
        return web.json_response({**self.about(form["query"]), "isPartial": True})


class Mimir(OneHour):
    def reply(self, request: web.BaseRequest, form: dict[str, str]) -> web.Response:
        if request.path != "/prometheus/api/v1/query":
            return web.Response(status=404, text="404 page not found")
        if request.headers.get("X-Scope-OrgID") != "team-a":
            return web.Response(status=401, text="no org id\n")
        return web.json_response(self.about(form["query"]))


async def report(
    capsys: pytest.CaptureFixture[str], store: StubStore, *words: str, path: str = ""
) -> tuple[int, str, str]:
    async with serving(store):
        period = ["--from=2026-11-01T10:00", "--to=2026-11-01T11:00", "-o", "json"]
        line = ["report", f"--prometheus.url={store.url}{path}", *period, *words]
        code = await asyncio.to_thread(main, line)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("store", [Thanos(), OldThanos(), Victoria()], ids=lambda store: type(store).__name__)
async def test_no_bill_is_made_of_half_of_the_data_unless_that_is_wanted(
    store: StubStore, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = await report(capsys, store)
    assert (code, out) == (2, "")
    assert "store_partial" in err and "or give --partial" in err
    code, out, err = await report(capsys, store, "--partial")
    found = json.loads(out)
    assert code == 1 and err.startswith("! store_partial: ")
    assert not found["complete"] and found["notices"][0].startswith("store_partial: ")
    assert found["total"]["gpu_seconds"] == 3600.0


async def test_mimir_is_asked_below_its_path_with_its_tenant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = tmp_path / "headers"
    headers.write_text("X-Scope-OrgID: team-a\n")
    tenant = f"--prometheus.headers-file={headers}"
    code, out, _ = await report(capsys, Mimir(), tenant, path="/prometheus")
    [row] = [group for group in json.loads(out)["rows"] if group["row"] == "group"]
    assert (code, row["namespace"], row["gpu_seconds"]) == (0, "ml", 3600.0)
    code, _, err = await report(capsys, Mimir(), path="/prometheus")
    assert code == 2 and "store_refused: HTTP 401: no org id" in err
    assert (await report(capsys, Mimir(), tenant))[0] == 2


async def test_thanos_gives_raw_samples_and_each_of_them_once(capsys: pytest.CaptureFixture[str]) -> None:
    store = OneHour()
    assert (await report(capsys, store))[0] == 0
    assert {(query["dedup"], query["max_source_resolution"]) for query in store.asked} == {("true", "0s")}


@pytest.mark.parametrize(("currency", "written"), [("JPY", "1,235"), ("EUR", "1,234.57"), ("KWD", "1,234.568")])
async def test_money_has_the_decimals_of_its_currency(
    currency: str, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"currency": currency, "gpu_hour": {"*": "1234.5678"}}))
    code, out, _ = await report(capsys, OneHour(), f"--price={prices}", "-o", "table")
    assert (code, out.splitlines()[-1].split()[-1]) == (0, written)


async def test_focus_refuses_a_currency_that_its_readers_do_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"currency": "EURO", "gpu_hour": {"*": "1"}}))
    code, out, err = await report(capsys, OneHour(), f"--price={prices}", "-o", "focus")
    assert (code, out) == (2, "") and "ISO 4217" in err


class TwoOfALongName(OneHour):
    """Two workloads of a namespace, and a name in characters that take two columns each."""

    names: tuple[str, ...] = (
        "chat-completion-frontend-blue",
        "chat-completion-frontend-green",
        "推論サーバーの長い名前",
    )

    def about(self, query: str) -> Any:
        if "podgpu_pod_info" in query:
            owner = {"workload_kind": "Deployment"}
            return vector(*(({**self.pod(name), **owner, "workload_name": name}, "1") for name in self.names))
        found = super().about(query)
        if query.startswith("last_over_time(podgpu_container_allocated") and found["data"]["result"]:
            [(_, value)] = [each["value"] for each in found["data"]["result"]]
            return vector(*((self.pod(name), value) for name in self.names))
        return found

    def pod(self, name: str) -> dict[str, str]:
        return {**POD, "namespace": "assistants", "pod": name}


@pytest.mark.parametrize("width", [80, 100])
async def test_on_a_terminal_every_line_fits_and_workloads_can_be_told_apart(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"currency": "EUR", "gpu_hour": {"*": "3.5"}}))
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    more = [f"--price={prices}", "--by=workload", "--share=held", "-o", "table"]
    _, out, _ = await report(capsys, TwoOfALongName(), *more)
    lines = out.splitlines()
    assert max(map(width_of, lines)) <= width
    assert " ".join(lines).startswith("2026-11-01T10:00:00Z to 2026-11-01T11:00:00Z, by held, the rest shared by")
    names = [line.split()[0] for line in lines if line.startswith("assist")]
    assert len(set(names)) == 3 and all(name.startswith("assistants/") for name in names)


async def test_a_name_is_whole_for_a_program_however_wide_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    store = TwoOfALongName()
    store.names = store.names[-1:]
    _, out, _ = await report(capsys, store, "--by=pod", "-o", "table")
    assert f"assistants/{store.names[0]} " in out


@pytest.mark.parametrize("output", ["table", "csv", "json"])
async def test_a_namespace_that_held_nothing_is_no_empty_bill(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = await report(capsys, OneHour(), "-n", "mll", "-o", output)
    assert (code, out) == (2, "")
    assert "-n mll: no pod of it held a GPU in this time; those of ml did; did you mean ml?" in err
