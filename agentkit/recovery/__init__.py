"""What to do when a request fails: is it an overflow, is another try worth it, how to get the view small enough."""
