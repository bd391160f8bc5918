"""The kubelet's sockets: calls, a connection that stays open, and the lists of devices."""
