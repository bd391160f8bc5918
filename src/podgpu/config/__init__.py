"""What a user can set. One field of `fields.Config` is the flag, the environment name, the file key and the docs."""

from podgpu.config.fields import OPTIONS, WEB, Config

__all__ = ["OPTIONS", "WEB", "Config"]
