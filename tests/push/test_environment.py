"""What the standard variables mean, and what is said about those that cannot be met."""

from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.push.environment import Destination, destination

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


def asked(**more: str) -> Destination:
    found = destination({**ENDPOINT, **more})
    assert found is not None
    return found


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_SERVICE_NAME": "gpus", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**ENDPOINT, "OTEL_SDK_DISABLED": "true"},
        {**ENDPOINT, "OTEL_METRICS_EXPORTER": "none"},
        {**ENDPOINT, "OTEL_METRICS_EXPORTER": "prometheus"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"},
    ],
)
def test_nobody_pushes_who_was_not_asked(environ: dict[str, str]) -> None:
    assert destination(environ) is None


def test_an_endpoint_is_enough() -> None:
    assert asked() == Destination(url="http://collector:4318/v1/metrics")
    assert (asked().timeout, asked().interval, asked().gzip) == (10.0, 60.0, False)


def test_the_path_of_metrics_is_added_to_the_general_endpoint_alone() -> None:
    assert asked(OTEL_EXPORTER_OTLP_ENDPOINT="https://c/otlp/").url == "https://c/otlp/v1/metrics"
    assert asked(OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="https://c/in").url == "https://c/in"


def test_the_exporter_alone_means_the_local_collector() -> None:
    found = destination({"OTEL_METRICS_EXPORTER": "prometheus, otlp"})
    assert found and found.url == "http://localhost:4318/v1/metrics"


def test_every_variable_counts_and_the_one_for_metrics_wins(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    found = asked(
        OTEL_EXPORTER_OTLP_HEADERS="api-key=general",
        OTEL_EXPORTER_OTLP_METRICS_HEADERS="authorization=Bearer%20abc%2C, x-scope = gpus",
        OTEL_EXPORTER_OTLP_TIMEOUT="2500",
        OTEL_EXPORTER_OTLP_COMPRESSION="none",
        OTEL_EXPORTER_OTLP_METRICS_COMPRESSION="gzip",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        OTEL_EXPORTER_OTLP_METRICS_PROTOCOL="http/protobuf",
        OTEL_METRIC_EXPORT_INTERVAL="15000",
        OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca"),
        OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(tmp_path / "cert"),
        OTEL_EXPORTER_OTLP_CLIENT_KEY=str(tmp_path / "key"),
        OTEL_RESOURCE_ATTRIBUTES="k8s.cluster.name=prod,service.name=other,note=a%2Cb",
        OTEL_SERVICE_NAME="gpus",
    )
    assert found == Destination(
        url="http://collector:4318/v1/metrics",
        headers={"authorization": "Bearer abc,", "x-scope": "gpus"},
        timeout=2.5,
        interval=15.0,
        gzip=True,
        ca_file=tmp_path / "ca",
        cert_file=tmp_path / "cert",
        key_file=tmp_path / "key",
        resource={"k8s.cluster.name": "prod", "service.name": "gpus", "note": "a,b"},
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "podgpu pushes over http/protobuf, usually to port 4318"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json", "write http/protobuf or leave it out"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "counters are cumulative"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "write it like http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:99999", "write it like http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=ok,nonsense", "entry 2 is not NAME=VALUE"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c", "not a list of headers"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%0Ab", "not a list of headers"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "write milliseconds"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "write milliseconds"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "write gzip or none"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere", "there is no file"),
    ],
)
def test_a_mistake_names_the_variable_and_what_to_write(name: str, value: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        asked(**{name: value})
    assert str(caught.value).startswith(f"{name}: ")


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cert").touch()
    with pytest.raises(UserError, match="go together"):
        asked(OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(tmp_path / "cert"))


def test_a_secret_is_not_in_the_message() -> None:
    with pytest.raises(UserError) as caught:
        asked(OTEL_EXPORTER_OTLP_HEADERS="api-key=hunter2,hunter3")
    assert "hunter" not in str(caught.value)
