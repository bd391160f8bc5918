"""What the agent does while the kubelet or the API server is away."""

import os
import signal
from pathlib import Path

import pytest

from tests.kubernetes import gpus, kubectl
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.gpus import DRIVER, wait_for
from tests.kubernetes.kubectl import Object
from tests.kubernetes.node import Node
from tests.kubernetes.programs import Programs
from tests.kubernetes.samples import Samples

pytestmark = pytest.mark.usefixtures("memory", "namespace")
