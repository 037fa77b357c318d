// cooperative_groups::inclusive_scan and exclusive_scan.
#pragma once
#include <cooperative_groups/reduce.h>
namespace cooperative_groups {
template <typename Group, typename T, typename F> EV_STATIC T inclusive_scan(const Group& group, T x, F&& f) {
    const unsigned int rank = group.thread_rank(), size = group.size();
    for (unsigned int step = 1; step < size; step *= 2) {
        const T other = group.shfl_up(x, step);
        if (rank >= step) x = f(other, x);
    }
    return x;
}
template <typename Group, typename T> EV_STATIC T inclusive_scan(const Group& group, T x) { return inclusive_scan(group, x, plus<T>()); }
// The first thread gets T().
template <typename Group, typename T, typename F> EV_STATIC T exclusive_scan(const Group& group, T x, F&& f) {
    const T before = group.shfl_up(inclusive_scan(group, x, f), 1);
    return group.thread_rank() == 0 ? T() : before;
}
template <typename Group, typename T> EV_STATIC T exclusive_scan(const Group& group, T x) { return exclusive_scan(group, x, plus<T>()); }
}  // namespace cooperative_groups
