"""The cluster as rows, by whatever a person asks for."""
