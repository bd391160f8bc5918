"""Many nodes: who reads each of them, what came of it, and how each stands."""
