"""PTX to LLVM IR: a warp is one function over vectors of 32 lanes."""
