"""The archive for a bug report."""

import json
import tarfile
from pathlib import Path

from podgpu.cli._bundle import write_bundle
from podgpu.config.precedence import load
from podgpu.model import of_one
from tests.views.quirks import SNAPSHOT


def test_of_the_options_only_numbers_and_fixed_words_are_shown(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, gpu_hour: {'*': 3.50}}")
    config = load(
        {
            "interval": ["2s"],
            "log_level": ["debug"],
            "series_limit": ["700"],
            "node_name": ["gpu-node-1"],
            "price": [str(prices)],
            "url": ["http://10.1.2.3:19400"],
            "cluster_upstreams": ["prod=https://gpus.example"],
            "cluster_contexts": ["prod-admin"],
            "web_allowed_hosts": ["gpus.example"],
            "kube_pod_labels": ["team"],
        },
        {},
    )
    write_bundle(str(tmp_path / "bundle.tar.gz"), of_one(SNAPSHOT), "{}", config)
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        file = archive.extractfile("podgpu-doctor/options.json")
        assert file
        options = json.loads(file.read())
    public = {"interval": "2.0", "log.level": "debug", "series.limit": "700"}
    private = ("node-name", "price", "url", "cluster.upstreams", "cluster.contexts", "web.allowed-hosts")
    assert options == {**public, **dict.fromkeys((*private, "kube.pod-labels"), "(set)")}
