from argparse import Namespace

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.option import CLUSTER, DIALECTS, GENERAL, KUBERNETES, LOG, STORE, WEB, options_of
from podgpu.sources.dcgm.options import DcgmOptions

HELP = "Read every node of a cluster and serve them together."
_GROUPS = (GENERAL, KUBERNETES, WEB, DIALECTS, LOG, CLUSTER, STORE)
# Those of an agent alone.
_NOT_HERE = (
    "interval",
    "node_name",
    "path_kubelet",
    "path_logs",
    "path_state",
    "sharing_ratio_file",
    "series_level",
    "series_detail",
)
# Where a node has no agent, its dcgm-exporter is read.
_EXPORTERS = [option.name for field, option in options_of(DcgmOptions).items() if field != "url"]
OPTIONS = tuple(
    name for name, option in ALL.items() if name in _EXPORTERS or (option.group in _GROUPS and name not in _NOT_HERE)
)


def run(config: Config, _: Namespace) -> int:
    from podgpu.cli._cluster_process import serve_cluster

    return serve_cluster(config)
