"""The kubelet's sockets: pods by the Pods API, and devices by pod-resources."""

PODS_API_FOLDER = "pods-api"  # below the kubelet's folder
