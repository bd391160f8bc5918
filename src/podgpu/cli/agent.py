from argparse import Namespace

from podgpu.config import Config

HELP = "Read this node's GPUs and serve them to Prometheus."


def run(config: Config, _: Namespace) -> int:
    from podgpu.cli._agent_process import serve

    return serve(config)
