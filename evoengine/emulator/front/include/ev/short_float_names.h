// Takes the pieces of a pair and puts pairs together; ends the macros of ev/short_float.h. Included twice as well.
#define EV_PAIRS(LOW, HIGH, LOW2, HIGH2, LOWS2, HIGHS2, SWAPPED, PAIR, LOWF, HIGHF)                   \
    EV EV_H LOW(EV_H2 a) { return a.x; }                                                              \
    EV EV_H HIGH(EV_H2 a) { return a.y; }                                                             \
    EV EV_H2 LOW2(EV_H2 a) { return EV_H2(a.x, a.x); }                                                \
    EV EV_H2 HIGH2(EV_H2 a) { return EV_H2(a.y, a.y); }                                               \
    EV EV_H2 LOWS2(EV_H2 a, EV_H2 b) { return EV_H2(a.x, b.x); }                                      \
    EV EV_H2 HIGHS2(EV_H2 a, EV_H2 b) { return EV_H2(a.y, b.y); }                                     \
    EV EV_H2 SWAPPED(EV_H2 a) { return EV_H2(a.y, a.x); }                                             \
    EV EV_H2 PAIR(EV_H a, EV_H b) { return EV_H2(a, b); }                                             \
    EV float LOWF(EV_H2 a) { return a.x; }                                                            \
    EV float HIGHF(EV_H2 a) { return a.y; }
#ifdef EV_BFLOAT
EV_PAIRS(__low2bfloat16, __high2bfloat16, __low2bfloat162, __high2bfloat162, __lows2bfloat162, __highs2bfloat162, __lowhigh2highlow,
         __halves2bfloat162, __low2float, __high2float)
#else
EV_PAIRS(__low2half, __high2half, __low2half2, __high2half2, __lows2half2, __highs2half2, __lowhigh2highlow, __halves2half2, __low2float,
         __high2float)
#endif
#undef EV_PAIRS
#undef EV_H
#undef EV_H2
#undef EV_RAW
#undef EV_RAW2
#undef EV_E
#undef EV_V1
#undef EV_V2
#undef EV_P
#undef EV_FTZ
#undef EV_ONE
#undef EV_WHOLE
#undef EV_INF
#undef EV_WIDEN
#undef EV_CONTRACT
#undef EV_EXACT
#undef EV_NATIVE_FUNCTIONS
#undef EV_BFLOAT
