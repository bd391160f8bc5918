"""What a user can set. One field of `fields.Config` is the flag, the environment name, the file key and the docs."""

from podgpu.config.fields import OPTIONS, Config
from podgpu.config.option import DIALECTS, WEB

__all__ = ["DIALECTS", "OPTIONS", "WEB", "Config"]
