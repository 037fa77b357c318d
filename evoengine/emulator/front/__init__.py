"""The front end: compiles CUDA C++ to PTX with clang and our own headers."""
