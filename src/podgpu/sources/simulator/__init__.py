"""A made-up node for the demo: eight cards that move plausibly and never by chance."""

from podgpu.sources.simulator.card import Card, Resident
from podgpu.sources.simulator.node import CARDS
from podgpu.sources.simulator.source import Simulator

__all__ = ["CARDS", "Card", "Resident", "Simulator"]
