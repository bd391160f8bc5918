import os

from tests.fakenvml.conftest import library

__all__ = ["library"]

collect_ignore = [] if os.environ.get("PODGPU_TEST_MATRIX") == "all" else ["test_phases.py"]
