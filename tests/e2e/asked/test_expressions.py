"""A real Prometheus over the demo answers what people ask of dcgm-exporter: KEDA, OpenCost, consoles, dashboards."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.catalog.dcgm import DEFAULT_COUNTERS
from tests.e2e.asked.expressions import EXPRESSIONS, KEPT, MOVED, NOT_OFFERED, Expression
from tests.e2e.prometheus import PROGRAM, Prometheus, started
from tests.e2e.rig import demo, eventually

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

# What OpenShift's console asks its users to add to dcgm-exporter's counters.
ADDED = ("DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_MAX_MEM_CLOCK", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX")
EXPORTER = {"container": "exporter", "namespace": "gpu-operator", "pod": "dcgm-exporter-x"}


@pytest.fixture(scope="module")
def scraper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("expressions")
    counters = folder / "counters.csv"
    counters.write_text("".join(f"{name}, gauge, as listed\n" for name in (*DEFAULT_COUNTERS, *ADDED)))
    options = ("--interval=1s", f"--dcgm.collectors={counters}", "--dcgm.per-container=on")
    with demo(["native", "dcgm"], folder / "log", *options) as node:
        place = urlsplit(node.urls["dcgm"]).netloc
        jobs = [
            {"job_name": KEPT, "honor_labels": True, "static_configs": [{"targets": [place]}]},
            {"job_name": MOVED, "static_configs": [{"targets": [place], "labels": EXPORTER}]},
        ]
        file = folder / "prometheus.yml"
        file.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
        with started(file, folder) as here:
            eventually(lambda: len(here.query('DCGM_FI_DEV_GPU_UTIL{job="moved"}')) > 1)
            eventually(lambda: len(here.query('DCGM_FI_DEV_GPU_UTIL{job="kept"}')) > 1)
            yield here


def asked(expression: str, job: str) -> str:
    """The same of one job alone: both have the same page."""
    for name in {*DEFAULT_COUNTERS, *ADDED}:
        expression = expression.replace(f"{name}{{", f'{name}{{job="{job}",')
    return expression


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda expression: f"{expression.origin}: {expression.text}")
def test_an_expression_has_an_answer(scraper: Prometheus, expression: Expression) -> None:
    assert eventually(lambda: scraper.query(asked(expression.text, expression.job)))


def test_what_is_asked_of_a_shared_card_is_answered_for_its_pod(scraper: Prometheus) -> None:
    """The demo has cards that several pods share: without rows of their own, they would be missing here."""
    used = scraper.query('avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE{job="kept",container!=""}) by (UUID, GPU_I_ID, pod)')
    places = [(labels["UUID"], labels.get("GPU_I_ID")) for labels, _ in used]
    assert len(places) > len(set(places))


@pytest.mark.parametrize("expression", NOT_OFFERED)
def test_what_is_not_offered_has_no_answer(scraper: Prometheus, expression: str) -> None:
    assert NOT_OFFERED[expression]
    assert scraper.query(expression) == []
