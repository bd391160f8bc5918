"""podgpu reports which pod uses which share of which GPU, and how it knows."""

__version__ = "0.1.0"
