import pytest

from tests.deploy import chart
from tests.deploy.chart import needs_helm

pytestmark = needs_helm

ON = {"enabled": True}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            {"podMonitor": ON, "scrapeAnnotations": ON},
            "podMonitor.enabled and scrapeAnnotations.enabled would each have the agents scraped",
        ),
        (
            {"podMonitor": ON, "podAnnotations": {"prometheus.io/scrape": "true"}},
            "podMonitor.enabled and podAnnotations with prometheus.io/scrape would each",
        ),
        (
            {"vmPodScrape": ON, "serviceMonitor": ON, "service": ON},
            "serviceMonitor.enabled and vmPodScrape.enabled would each",
        ),
        ({"serviceMonitor": ON}, "serviceMonitor.enabled needs a Service to find: set service.enabled=true"),
        (
            {"hostPID": False, "config": {"series": {"level": "process"}}},
            "config.series.level=process wants a series for each process, but without hostPID",
        ),
        ({"hostPID": False, "switches": ON}, "switches.enabled needs hostPID"),
        (
            {"ratioFile": "2", "hostPaths": {"podResources": False}},
            "ratioFile divides what device plugins gave to containers, but without hostPaths.podResources",
        ),
        (
            {"hostPaths": {"podResources": False, "podsApi": True}},
            "hostPaths.podsApi without hostPaths.podResources shows the agent half of the kubelet's folder",
        ),
        (
            {"hostPaths": {"podResources": False}, "config": {"kube.api": "off"}},
            "leave the agent no sign of Kubernetes, and it would take the node for a machine without it",
        ),
        (
            {"config": {"kube.pods": "kubelet"}},
            "config.kube.pods=kubelet has the kubelet list pods, but neither hostPaths.podsApi nor hostPaths.podLogs",
        ),
        (
            {"config": {"kube.pods": "kubelet", "source": "dcgm"}, "hostPaths": {"podsApi": True}},
            "a dcgm-exporter that the API server finds among the pods, but config.kube.pods is kubelet",
        ),
        (
            {"securityContext": {"runAsUser": 1000}},
            "only uid 0 can open the kubelet's sockets. Set hostPaths.podResources=false",
        ),
        ({"podSecurityContext": {"runAsNonRoot": True}}, "only uid 0 can open the kubelet's sockets"),
        (
            {"config": {"source": "dcgm", "kube": {"api": False}}},
            "config.source reads a dcgm-exporter that the API server finds, but config.kube.api is off",
        ),
        (
            {"config": {"dcgm": {"timeout": "5s"}, "dcgm.timeout": "6s"}},
            "config.dcgm.timeout is given twice, once as a section and once with dots",
        ),
        *(
            (
                {part: {"config": {key: text}}} if part else {"config": {key: text}},
                f"{part and part + '.'}config.{said}",
            )
            for part, key, text, said in (
                ("", "interval", "10m", "interval: 10m is out of range; choose 100ms to 5m."),
                (
                    "",
                    "dcgm.max-bytes",
                    "1GiB",
                    "dcgm.max-bytes: 1GiB is out of range; choose 64KiB to 256MiB.",
                ),
                ("", "series.limit", "7", "series.limit: 7 is out of range; choose 100 to 10000000."),
                (
                    "cluster",
                    "cluster.interval",
                    "500ms",
                    "cluster.interval: 500ms is out of range; choose 1s to 10m.",
                ),
                (
                    "report",
                    "prometheus.timeout",
                    "0.5h",
                    "prometheus.timeout: 0.5h is out of range; choose 1s to 10m.",
                ),
            )
        ),
        (
            {"listeners": [{"port": 19400, "dialect": "dcgm"}]},
            "listeners: port 19400 is taken twice. Give each page a port of its own.",
        ),
        (
            {"listeners": [{"port": 9400, "dialect": "dcgm"}, {"port": 9401, "dialect": "dcgm"}]},
            'listeners: two ports are named "dcgm". Give one of them another name.',
        ),
        *(
            (
                {"config": {"web.probe-address": address}},
                f"config.web.probe-address={address} is not where the kubelet's probes ask",
            )
            for address in ("127.0.0.1:19401", "[::1]:19401", ":0")
        ),
        (
            {"cluster": {"config": {"web": {"probe-address": "localhost:19401"}}}},
            "cluster.config.web.probe-address=localhost:19401 is not where the kubelet's probes ask",
        ),
        (
            {"config": {"web.probe-address": ":19400"}},
            "config.web.probe-address=:19400: the port is taken twice",
        ),
        (
            {
                "config": {"web.probe-address": ":19401"},
                "listeners": [{"port": 9400, "dialect": "dcgm", "name": "probe"}],
            },
            'listeners: a port is named "probe", as that of web.probe-address is',
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_the_reason(values: chart.Values, reason: str) -> None:
    assert reason in chart.refusal(values)


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("web.listen-address", "port and listeners"),
        ("dcgm.collectors", "customMetrics"),
        ("sharing.ratio-file", "ratioFile"),
        ("path.kubelet", "kubeletPath"),
        ("path.logs", "hostPaths.podLogs"),
        ("path.root", "hostPaths.root"),
        ("path.procfs", "hostPID"),
        ("node-name", "NODE_NAME"),
    ],
)
def test_what_another_value_sets_cannot_be_set_below_config(key: str, instead: str) -> None:
    said = chart.refusal({"config": {key: ":1" if key == "web.listen-address" else "x"}})
    assert f"config.{key} cannot be set" in said and instead in said


@pytest.mark.parametrize(
    "values",
    [
        {"config": {"source": "dcgm", "kube.api": "off", "dcgm.url": "http://127.0.0.1:9400"}},
        {"config": {"series": {"level": "process"}}},
        {"securityContext": {"runAsUser": 1000}, "hostPaths": {"podResources": False}},
        {"podMonitor": ON, "podAnnotations": {"prometheus.io/scrape": "false"}},
        {
            "listeners": [
                {"port": 9400, "dialect": "dcgm"},
                {"port": 9401, "dialect": "dcgm", "name": "second"},
            ]
        },
    ],
)
def test_their_twins_that_do_not_contradict_are_taken(values: chart.Values) -> None:
    assert chart.text(values)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"podMonitr": ON}, "additional properties 'podMonitr' not allowed"),
        ({"hostPaths": {"podresources": True}}, "additional properties 'podresources' not allowed"),
        ({"config": {"intervall": "5s"}}, "additional properties 'intervall' not allowed"),
        ({"config": {"log": {"levle": "warn"}}}, "additional properties 'levle' not allowed"),
        (
            {"config": {"source": "nmvl"}},
            "value must be one of 'nvml', 'dcgm', 'replay', 'nvml+dcgm', 'simulator'",
        ),
        ({"config": {"interval": "fast"}}, "'fast' does not match pattern"),
        ({"config": {"interval": 600}}, "maximum: got 600, want 300"),
        ({"config": {"kube.api": "kubernetes"}}, "does not match pattern"),
        ({"listeners": [{"port": 9400, "dialect": "dcmg"}]}, "value must be one of 'native', 'cadvisor'"),
        ({"webConfig": {"tls_config": {}}}, "additional properties 'tls_config' not allowed"),
        ({"webConfig": {"basic_auth_users": {"ada": "secret"}}}, "does not match pattern"),
        ({"port": 0}, "minimum: got 0, want 1"),
        ({"kubeletPath": "var/lib/kubelet"}, "does not match pattern"),
        ({"listeners": [{"port": 9400}]}, "missing property 'dialect'"),
        ({"image": {"digest": "latest"}}, "does not match pattern"),
    ],
)
def test_the_schema_refuses_what_does_not_exist(values: chart.Values, reason: str) -> None:
    assert reason in chart.refusal(values)
