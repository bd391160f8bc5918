"""What runs on this node, or in the cluster, according to Kubernetes. Every part is optional and reports its state."""
