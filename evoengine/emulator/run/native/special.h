/* Functions of double that CUDA has and libm lacks, one number at a time. Relative errors are about 1e-15, measured in the
   tests. */
#ifndef EV_SPECIAL_H
#define EV_SPECIAL_H

extern double cbrt(double), cos(double), erf(double), erfc(double), exp(double), hypot(double, double), log(double), sin(double);

static const double PI = 3.141592653589793, ROOT_PI = 1.7724538509055161, ROOT_2 = 1.4142135623730951;

static double rcbrt(double x) {
    return 1.0 / cbrt(x);
}

static double rhypot(double x, double y) {
    return 1.0 / hypot(x, y);
}

/* sin(pi x) for quarter 0, cos(pi x) for 1: the reduction to [-1/4, 1/4] is exact. */
static double half_turns(double x, int quarter) {
    double whole = x - 2.0 * __builtin_rint(0.5 * x), n = __builtin_rint(2.0 * whole), rest = PI * (whole - 0.5 * n);
    if (x - x != 0.0) /* infinite or NaN */
        return x - x;
    int turn = ((int)n + quarter) & 3;
    double y = turn & 1 ? cos(rest) : sin(rest);
    y = turn & 2 ? -y : y;
    return y == 0.0 ? (quarter ? 0.0 : __builtin_copysign(0.0, x)) : y;
}

static double sinpi(double x) {
    return half_turns(x, 0);
}

static double cospi(double x) {
    return half_turns(x, 1);
}

/* e^(x^2) erfc(x): x^2 in two parts; from 20 on the asymptotic series (DLMF 7.12.1), whose eighth term is below 1e-16. */
static double erfcx(double x) {
    if (x > 20.0) {
        double s = 0.5 / x / x, sum = 1.0;
        for (int n = 7; n > 0; --n)
            sum = 1.0 - (2 * n - 1) * s * sum;
        return sum / (x * ROOT_PI);
    }
    double high = x * x, low = __builtin_fma(x, x, -high);
    double grown = exp(high);
    return grown > 1e308 ? grown : grown * (1.0 + low) * erfc(x);
}

/* Halley's method on erfc(y) = x for 0 < x <= 1/2, from Abramowitz and Stegun 26.2.23 (absolute error 4.5e-4). */
static double erfcinv_tail(double x) {
    double t = __builtin_sqrt(-2.0 * log(0.5 * x));
    double y = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    y /= ROOT_2;
    for (int i = 0; i < 3; ++i) {
        double step = (erfc(y) - x) * 0.5 * ROOT_PI * exp(y * y);
        y += step / (1.0 - y * step);
    }
    return y;
}

/* The same on erf(y) = x for |x| < 1/2, from the series (DLMF 7.17.2). */
static double erfinv_centre(double x) {
    double s = 0.25 * PI * x * x, y = 0.5 * ROOT_PI * x * (1.0 + s * (1.0 / 3.0 + s * (7.0 / 30.0 + s * 127.0 / 630.0)));
    for (int i = 0; i < 2; ++i) {
        double step = (x - erf(y)) * 0.5 * ROOT_PI * exp(y * y);
        y += step / (1.0 - y * step);
    }
    return y;
}

static double erfinv(double x) {
    double size = __builtin_fabs(x);
    if (size < 1e-8)
        return 0.5 * ROOT_PI * x;
    if (size < 0.5)
        return erfinv_centre(x);
    if (size < 1.0)
        return __builtin_copysign(erfcinv_tail(1.0 - size), x);
    return size == 1.0 ? x * __builtin_inf() : __builtin_nan("");
}

static double erfcinv(double x) {
    if (x > 0.0 && x <= 0.5)
        return erfcinv_tail(x);
    if (x >= 1.5 && x < 2.0)
        return -erfcinv_tail(2.0 - x);
    return x == 0.0 ? __builtin_inf() : erfinv(1.0 - x);
}

/* erfc(-x / sqrt 2) / 2, with what the argument's rounding lost put back by the derivative. */
static double normcdf(double x) {
    const double scale = 0.7071067811865476, rest = -4.8336466567264567e-17; /* 1 / sqrt 2 in two parts */
    double t = -x * scale, low = __builtin_fma(-x, scale, -t) - x * rest, y = erfc(t);
    double slope = 2.0 / ROOT_PI * exp(-t * t);
    return 0.5 * (slope > 0.0 && x - x == 0.0 ? y - slope * low : y);
}

static double normcdfinv(double x) {
    return -ROOT_2 * erfcinv(2.0 * x);
}

/* I0 and I1 for x >= 0: the power series (DLMF 10.25.2), all terms positive; beyond 30 the asymptotic one (DLMF 10.40.1). */
static double bessel_i(int order, double x) {
    if (x > 30.0) {
        double term = 1.0, sum = 1.0, half = exp(0.5 * x);
        for (int k = 1; k < 40 && __builtin_fabs(term) > 1e-18; ++k)
            sum += term *= -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8.0 * x);
        return half * (sum / __builtin_sqrt(2.0 * PI * x)) * half;
    }
    double s = 0.25 * x * x, term = order ? 0.5 * x : 1.0, sum = term;
    for (int k = 1; k < 100 && term > 1e-18 * sum; ++k)
        sum += term *= s / (k * (double)(k + order));
    return sum + (x - x); /* NaN */
}

static double cyl_bessel_i0(double x) {
    double size = __builtin_fabs(x);
    return size > 720.0 ? size * __builtin_inf() : bessel_i(0, size);
}

static double cyl_bessel_i1(double x) {
    double size = __builtin_fabs(x);
    return size > 720.0 ? x * __builtin_inf() : __builtin_copysign(bessel_i(1, size), x);
}

#endif
