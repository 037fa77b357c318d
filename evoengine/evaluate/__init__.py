"""The evaluate stage: compiles candidates and has a device judge them."""
