from tests.fakenvml.conftest import library

__all__ = ["library"]
