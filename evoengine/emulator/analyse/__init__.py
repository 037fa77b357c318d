"""Static analysis of a kernel: control flow, liveness, divergence, uniform and affine registers."""
