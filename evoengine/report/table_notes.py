"""What is printed below tables to explain them."""

MODELLED = "times are modelled, not measured: they give no speed-up against a library"
CHANGED = "tunables: only values that differ from the kernel's defaults"
SPEEDUP = (
    "speed-up: time of the fastest baseline / time of the kernel, with its 95 % interval; below 1"
    " the kernel is slower"
)
OVER_TARGET = "!: exceeds a limit of the task's target; `show --trial` says which"
