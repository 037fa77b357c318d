"""Source to machine code: checked includes, compiler processes with limits, a cache of cubins."""
