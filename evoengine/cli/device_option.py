"""The words of --device and --check, which two commands have."""

DEVICE_HELP = (
    "auto, cuda, cuda:N, emulator or emulator:TARGET (l4, h200, a100, ...); auto takes a GPU, or"
    " where there is none the emulator for the task's target: results are checked as on a GPU,"
    " times are modelled."
)
CHECK_HELP = (
    "What the emulator looks for in every first verdict: races,bounds,init,async (all of them by"
    " default) or none."
)
