"""Lowers PTX to LLVM IR: one function runs one warp, on vectors of 32 lanes."""
