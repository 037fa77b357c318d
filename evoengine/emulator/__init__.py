"""A CUDA device made of CPU: CUDA C++ through clang to PTX, PTX through LLVM to this machine."""
