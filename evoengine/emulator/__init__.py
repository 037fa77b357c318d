"""A CUDA device emulated on the CPU: CUDA C++ through clang to PTX, PTX through LLVM to the
host.
"""
