"""What is printed below tables to explain them."""

MODELLED = "times are modelled, not measured: they give no speed-up against a library"
CHANGED = "tunables: only values that differ from the kernel's defaults"
SPEEDUP = (
    "speed-up: time of the fastest baseline / time of the kernel, with its 95 % interval; below 1"
    " the kernel is slower"
)
OVER_TARGET = "!: exceeds a limit of the task's target; `show --trial` says which"
AS_SELECTED = "^: as the search saw it when it gave the place; not measured at the end yet"
FINALS = (
    "speed-ups and times of elites were measured once more at the end, which decided nothing;"
    " selected at: as the search saw it"
)
OF_THE_SEARCH = "speed-ups of trials are those that the search saw"
