"""How much is taken from a kubelet or an API server that is in trouble, or that somebody has filled up.

What is beyond a bound is counted, and the part says so. No bound is near to what a working node has.
"""

MOST_PODS = 2000  # of a node; the largest have some hundreds
MOST_LISTED = 10_000  # pods that an answer of the kubelet may list: most of them have no more than a name
MOST_CONTAINERS = 512  # of a pod
MOST_IDS = 131_072  # that a node has given out, or offers: plugins with the smallest units reach 100,000
