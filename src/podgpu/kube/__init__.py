"""Who is on this node, according to Kubernetes. Every part is optional and reports its own state."""
