"""What if cards were divided in another way: places, and the recorded minutes under them."""
