// Two halfwords or four bytes of a word at once, and the smaller or larger of three.
#pragma once
// NAME of x and y, which are T widened to int; `low` and `high` are the ends of T. What EXPRESSION gives is cut to T's bits.
#define EV_PARTS(NAME, COUNT, SIGN, T, EXPRESSION)                                                         \
    EV unsigned int NAME##COUNT(unsigned int a, unsigned int b) {                                          \
        constexpr int bits = 32 / COUNT, ones = (1 << bits) - 1;                                           \
        constexpr int low = (SIGN T)-1 < 0 ? -(1 << (bits - 1)) : 0, high = low + ones;                    \
        unsigned int result = 0;                                                                           \
        for (int i = 0; i < 32; i += bits) {                                                               \
            const int x = (SIGN T)(a >> i), y = (SIGN T)(b >> i);                                          \
            result |= ((unsigned int)(EXPRESSION) & ones) << i;                                            \
        }                                                                                                  \
        return result;                                                                                     \
    }
#define EV_VIDEO(NAME, SIGN, EXPRESSION) EV_PARTS(NAME, 2, SIGN, short, EXPRESSION) EV_PARTS(NAME, 4, SIGN, char, EXPRESSION)
#define EV_WITHIN(x) ((x) < low ? low : (x) > high ? high : (x))
EV_VIDEO(__vadd, unsigned, x + y)
EV_VIDEO(__vaddss, signed, EV_WITHIN(x + y))
EV_VIDEO(__vaddus, unsigned, EV_WITHIN(x + y))
EV_VIDEO(__vsub, unsigned, x - y)
EV_VIDEO(__vsubss, signed, EV_WITHIN(x - y))
EV_VIDEO(__vsubus, unsigned, EV_WITHIN(x - y))
EV_VIDEO(__vabsdiffs, signed, x < y ? y - x : x - y)
EV_VIDEO(__vabsdiffu, unsigned, x < y ? y - x : x - y)
EV_VIDEO(__vavgs, signed, x + y < 0 ? (x + y) >> 1 : (x + y + 1) >> 1)  // halves away from zero if positive, else downwards
EV_VIDEO(__vavgu, unsigned, (x + y + 1) >> 1)
EV_VIDEO(__vhaddu, unsigned, (x + y) >> 1)
EV_VIDEO(__vmaxs, signed, x < y ? y : x)
EV_VIDEO(__vmaxu, unsigned, x < y ? y : x)
EV_VIDEO(__vmins, signed, x < y ? x : y)
EV_VIDEO(__vminu, unsigned, x < y ? x : y)
// All ones (__vcmp) or one (__vset) where it is so.
#define EV_COMPARISON(NAME, SIGN, OP) EV_VIDEO(__vcmp##NAME, SIGN, x OP y ? ones : 0) EV_VIDEO(__vset##NAME, SIGN, x OP y)
EV_COMPARISON(eq, unsigned, ==)
EV_COMPARISON(ne, unsigned, !=)
EV_COMPARISON(lts, signed, <)
EV_COMPARISON(ltu, unsigned, <)
EV_COMPARISON(les, signed, <=)
EV_COMPARISON(leu, unsigned, <=)
EV_COMPARISON(gts, signed, >)
EV_COMPARISON(gtu, unsigned, >)
EV_COMPARISON(ges, signed, >=)
EV_COMPARISON(geu, unsigned, >=)
#undef EV_COMPARISON
#undef EV_WITHIN
#undef EV_VIDEO
#undef EV_PARTS
#define EV_OF_ZERO(COUNT)                                                                                  \
    EV unsigned int __vneg##COUNT(unsigned int a) { return __vsub##COUNT(0, a); }                          \
    EV unsigned int __vnegss##COUNT(unsigned int a) { return __vsubss##COUNT(0, a); }                      \
    EV unsigned int __vabs##COUNT(unsigned int a) { return __vabsdiffs##COUNT(a, 0); }                     \
    EV unsigned int __vabsss##COUNT(unsigned int a) { return __vmaxs##COUNT(a, __vsubss##COUNT(0, a)); }   \
    EV unsigned int __vsads##COUNT(unsigned int a, unsigned int b) { return __ev_sum##COUNT(__vabsdiffs##COUNT(a, b)); } \
    EV unsigned int __vsadu##COUNT(unsigned int a, unsigned int b) { return __ev_sum##COUNT(__vabsdiffu##COUNT(a, b)); }
EV unsigned int __ev_sum2(unsigned int a) { return (a & 0xffff) + (a >> 16); }
EV unsigned int __ev_sum4(unsigned int a) { return (a & 0xff) + (a >> 8 & 0xff) + (a >> 16 & 0xff) + (a >> 24); }
EV_OF_ZERO(2)
EV_OF_ZERO(4)
#undef EV_OF_ZERO

#define EV_THREE(M, T, S)                                                                                  \
    EV T __vi##M##3_##S(T a, T b, T c) { return M(M(a, b), c); }                                           \
    EV T __viadd##M##_##S(T a, T b, T c) { return M((T)((unsigned int)a + (unsigned int)b), c); }
#define EV_RELU(M)                                                                                         \
    EV int __vi##M##_s32_relu(int a, int b) { return max(M(a, b), 0); }                                    \
    EV int __vi##M##3_s32_relu(int a, int b, int c) { return max(M(M(a, b), c), 0); }                      \
    EV int __viadd##M##_s32_relu(int a, int b, int c) { return max(__viadd##M##_s32(a, b, c), 0); }
EV_THREE(max, int, s32)
EV_THREE(max, unsigned int, u32)
EV_THREE(min, int, s32)
EV_THREE(min, unsigned int, u32)
EV_RELU(max)
EV_RELU(min)
#undef EV_THREE
#undef EV_RELU
// The predicate says whether it is the first.
EV int __vibmax_s32(int a, int b, bool* first) { return *first = a >= b, max(a, b); }
EV unsigned int __vibmax_u32(unsigned int a, unsigned int b, bool* first) { return *first = a >= b, max(a, b); }
EV int __vibmin_s32(int a, int b, bool* first) { return *first = a <= b, min(a, b); }
EV unsigned int __vibmin_u32(unsigned int a, unsigned int b, bool* first) { return *first = a <= b, min(a, b); }
