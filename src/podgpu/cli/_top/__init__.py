"""The screen of `podgpu top`."""
