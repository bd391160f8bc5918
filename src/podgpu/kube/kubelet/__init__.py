"""The kubelet's sockets: pods by the Pods API, and devices by pod-resources."""
