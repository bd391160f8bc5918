"""Many nodes: how they are found and read, and the state of each."""
