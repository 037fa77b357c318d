"""CUDA C++ to PTX: clang and our own headers."""
