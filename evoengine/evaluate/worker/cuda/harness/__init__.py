"""What grader and runner share: virtual memory, our own kernels, their messages, the GPU token."""
