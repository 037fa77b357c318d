/* The external functions of the front end's headers (front/include/ev/externals.h): __ev_expf is ev_call_expf.

   Frequent functions are vector code with errors below 2 ulp; the others are libm's, a lane at a time, and those that libm
   lacks are in special.h, for float through double. */
#include "elementary.h"
#include "lanes.h"
#include "special.h"

#define VECTOR(name, function)                                                                                                          \
    void ev_call_##name(const float *x, float *y) {                                                                                     \
        STORE(f32x32, y, function(LOAD(f32x32, x)));                                                                                    \
    }
VECTOR(expf, exp_lanes)
VECTOR(exp2f, exp2_lanes)
VECTOR(logf, log_lanes)
VECTOR(log2f, log2_lanes)
VECTOR(tanhf, tanh_lanes)
VECTOR(erff, erf_lanes)

void ev_call_sinf(const float *x, float *y) {
    ev_sin_approx_f32(x, y);
}

void ev_call_cosf(const float *x, float *y) {
    ev_cos_approx_f32(x, y);
}

#define BY_LANE(name, type, expression)                                                                                                 \
    void ev_call_##name(const type *x, type *y) {                                                                                       \
        for (int i = 0; i < LANES; ++i)                                                                                                 \
            y[i] = (type)(expression);                                                                                                  \
    }
#define BY_LANE_2(name, type, second, expression)                                                                                       \
    void ev_call_##name(const type *x, const second *y, type *z) {                                                                      \
        for (int i = 0; i < LANES; ++i)                                                                                                 \
            z[i] = (type)(expression);                                                                                                  \
    }

/* libm's, for both types */
#define LIBM(name)                                                                                                                      \
    extern float name##f(float);                                                                                                        \
    extern double name(double);                                                                                                         \
    BY_LANE(name##f, float, name##f(x[i]))                                                                                              \
    BY_LANE(name, double, name(x[i]))
LIBM(tan)
LIBM(asin)
LIBM(acos)
LIBM(atan)
LIBM(sinh)
LIBM(cosh)
LIBM(asinh)
LIBM(acosh)
LIBM(atanh)
LIBM(expm1)
LIBM(log10)
LIBM(log1p)
LIBM(cbrt)
LIBM(erfc)
LIBM(lgamma)
LIBM(tgamma)

/* libm's, for double; float has vector code */
#define LIBM_DOUBLE(name)                                                                                                               \
    extern double name(double);                                                                                                         \
    BY_LANE(name, double, name(x[i]))
LIBM_DOUBLE(sin)
LIBM_DOUBLE(cos)
LIBM_DOUBLE(tanh)
LIBM_DOUBLE(exp)
LIBM_DOUBLE(exp2)
LIBM_DOUBLE(log)
LIBM_DOUBLE(log2)
LIBM_DOUBLE(erf)

/* for both types by a function of double; not every libm has a float version */
#define THROUGH_DOUBLE(name, function)                                                                                                  \
    BY_LANE(name##f, float, function((double)x[i]))                                                                                     \
    BY_LANE(name, double, function(x[i]))
extern double j0(double), j1(double), y0(double), y1(double), pow(double, double);

static double power_of_ten(double x) {
    return pow(10.0, x); /* not every libm has exp10 */
}

THROUGH_DOUBLE(exp10, power_of_ten)
THROUGH_DOUBLE(sinpi, sinpi)
THROUGH_DOUBLE(cospi, cospi)
THROUGH_DOUBLE(rcbrt, rcbrt)
THROUGH_DOUBLE(erfcx, erfcx)
THROUGH_DOUBLE(erfinv, erfinv)
THROUGH_DOUBLE(erfcinv, erfcinv)
THROUGH_DOUBLE(normcdf, normcdf)
THROUGH_DOUBLE(normcdfinv, normcdfinv)
THROUGH_DOUBLE(j0, j0)
THROUGH_DOUBLE(j1, j1)
THROUGH_DOUBLE(y0, y0)
THROUGH_DOUBLE(y1, y1)
THROUGH_DOUBLE(cyl_bessel_i0, cyl_bessel_i0)
THROUGH_DOUBLE(cyl_bessel_i1, cyl_bessel_i1)

#define LIBM_2(name)                                                                                                                    \
    extern float name##f(float, float);                                                                                                 \
    extern double name(double, double);                                                                                                 \
    BY_LANE_2(name##f, float, float, name##f(x[i], y[i]))                                                                               \
    BY_LANE_2(name, double, double, name(x[i], y[i]))
LIBM_2(atan2)
LIBM_2(pow)
LIBM_2(fmod)
LIBM_2(remainder)
LIBM_2(hypot)
LIBM_2(nextafter)
BY_LANE_2(rhypotf, float, float, rhypot((double)x[i], (double)y[i]))
BY_LANE_2(rhypot, double, double, rhypot(x[i], y[i]))

extern float ldexpf(float, int);
extern double ldexp(double, int);
BY_LANE_2(ldexpf, float, int32_t, ldexpf(x[i], y[i]))
BY_LANE_2(ldexp, double, int32_t, ldexp(x[i], y[i]))
