"""The parts of podgpu whose state a snapshot shows, by the names they have there."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    name: str


NVML = Part("nvml")
DCGM = Part("dcgm")
PODRESOURCES = Part("podresources")
PODS_API = Part("pods-api")
APISERVER = Part("apiserver")
LOG_DIRS = Part("log-dirs")
RESOURCE_CLAIMS = Part("resource-claims")
PROCFS = Part("procfs")
