"""How the bounds of a modelled launch become its time, in words for people and for prompts."""

from evoengine.emulator.targets import LAUNCH_US
from evoengine.emulator.timing_model.launch_time import DEFAULT

_P, _Q = f"{DEFAULT.latency:g}", f"{DEFAULT.pipes:g}"

IN_FULL = (
    f"a launch takes {LAUNCH_US:g} us launch gap + (T^{_P} - (T/R)^{_P} + latency^{_P})^(1/{_P}),"
    f" with T = (sum of all other bounds^{_Q})^(1/{_Q}) and R the blocks that run at once on the"
    " busiest SM; a call takes the sum of its launches, memsets and copies"
)
IN_SHORT = (
    f"A launch takes {LAUNCH_US:g} us launch gap plus a smooth maximum of its bounds: at least"
    " the largest, at most their sum. `latency` is the time of blocks one after the other on the"
    " busiest SM, as many at once as fit there: dependent chains, barriers, waits. Every other"
    " bound is the work of one unit alone. Shorten the largest bounds; small ones hardly count."
    " Launches add up."
)
