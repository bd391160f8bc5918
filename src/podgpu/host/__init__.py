"""What runs on this node, according to the kernel and the files of the system."""
