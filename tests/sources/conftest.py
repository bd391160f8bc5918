from tests.fakenvml.conftest import library, stage

__all__ = ["library", "stage"]
