"""One algorithm a file; `drive` is the one loop around them."""
