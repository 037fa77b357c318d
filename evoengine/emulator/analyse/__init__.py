"""What can be known of a kernel before it runs: flow, divergence, what is the same in all lanes."""
