// cooperative_groups::reduce and its operations.
#pragma once
#include <cooperative_groups.h>
namespace cooperative_groups {
#define EV_OPERATION(NAME, EXPRESSION) \
    template <typename T = void> struct NAME { EV_METHOD T operator()(T a, T b) const { return EXPRESSION; } }; \
    template <> struct NAME<void> { template <typename T> EV_METHOD T operator()(T a, T b) const { return EXPRESSION; } };
EV_OPERATION(plus, a + b)
EV_OPERATION(less, b < a ? b : a)
EV_OPERATION(greater, a < b ? b : a)
EV_OPERATION(bit_and, a & b)
EV_OPERATION(bit_or, a | b)
EV_OPERATION(bit_xor, a ^ b)
#undef EV_OPERATION
// The result over the whole group, in every thread of it.
template <unsigned int SIZE, typename Parent, typename T, typename F>
EV_STATIC T reduce(const thread_block_tile<SIZE, Parent>& tile, T x, F&& f) {
    for (unsigned int step = SIZE / 2; step > 0; step /= 2) x = f(x, tile.shfl_xor(x, step));
    return x;
}
template <typename T, typename F> EV_STATIC T reduce(const coalesced_group& group, T x, F&& f) {
    const unsigned int rank = group.thread_rank(), size = group.size();
    for (unsigned int step = 1; step < size; step *= 2) {
        const T other = group.shfl_down(x, step);
        if (rank + step < size) x = f(x, other);
    }
    return group.shfl(x, 0);
}
}  // namespace cooperative_groups
