"""Is it the controller or the contact law? Runs that decide, and the answer in words."""
