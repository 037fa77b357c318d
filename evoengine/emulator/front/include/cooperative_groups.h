// cooperative_groups: blocks, tiles of a warp, the threads that are active together, the grid's numbers.
#pragma once
namespace cooperative_groups {
// Rank and size in a grid or block of up to three dimensions.
EV unsigned int __ev_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
EV unsigned int __ev_size() { return blockDim.x * blockDim.y * blockDim.z; }
EV unsigned int __ev_lanes_below() {
    unsigned int mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

class thread_block {
   public:
    EV_METHOD static void sync() { __syncthreads(); }
    EV_METHOD static void barrier_sync() { __syncthreads(); }
    EV_METHOD static unsigned int thread_rank() { return __ev_rank(); }
    EV_METHOD static unsigned int size() { return __ev_size(); }
    EV_METHOD static unsigned int num_threads() { return __ev_size(); }
    EV_METHOD static dim3 group_index() { return blockIdx; }
    EV_METHOD static dim3 thread_index() { return threadIdx; }
    EV_METHOD static dim3 group_dim() { return blockDim; }
    EV_METHOD static dim3 dim_threads() { return blockDim; }
};
EV thread_block this_thread_block() { return thread_block(); }

// A grid can be asked for its numbers; sync() between blocks needs a cooperative launch, which there is not.
class grid_group {
   public:
    EV_METHOD static bool is_valid() { return false; }
    EV_METHOD static unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    EV_METHOD static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    EV_METHOD static unsigned long long thread_rank() { return block_rank() * __ev_size() + __ev_rank(); }
    EV_METHOD static unsigned long long size() { return num_blocks() * __ev_size(); }
    EV_METHOD static unsigned long long num_threads() { return size(); }
    EV_METHOD static dim3 block_index() { return blockIdx; }
    EV_METHOD static dim3 dim_blocks() { return gridDim; }
    EV_METHOD static dim3 group_dim() { return gridDim; }
};
EV grid_group this_grid() { return grid_group(); }

// Values of any size travel in pieces of 4 bytes.
#define EV_PIECES(T, x, SHUFFLE)                                                              \
    unsigned int words[(sizeof(T) + 3) / 4] = {};                                             \
    __builtin_memcpy(words, &x, sizeof(T));                                                   \
    for (unsigned int i = 0; i < (sizeof(T) + 3) / 4; ++i) words[i] = SHUFFLE;                \
    __builtin_memcpy(&x, words, sizeof(T));                                                   \
    return x;
template <typename T> EV_STATIC T __ev_shuffled(T x, unsigned int mask, int lane) { EV_PIECES(T, x, __shfl_sync(mask, words[i], lane)) }
#define EV_GROUP_SHUFFLE(NAME, B) \
    template <typename T> EV_METHOD T NAME(T x, B lane) const { EV_PIECES(T, x, __##NAME##_sync(mask(), words[i], lane, SIZE)) }

class coalesced_group;
struct __ev_no_parent {};
template <unsigned int SIZE, typename Parent = __ev_no_parent> class thread_block_tile;
// Which of its parent's tiles a tile is, and how many there are.
template <unsigned int SIZE, typename Parent> struct __ev_place {
    EV_METHOD static unsigned int meta_group_rank() { return __ev_rank() / SIZE; }
    EV_METHOD static unsigned int meta_group_size() { return (__ev_size() + SIZE - 1) / SIZE; }
};
template <unsigned int SIZE, unsigned int WHOLE, typename Parent> struct __ev_place<SIZE, thread_block_tile<WHOLE, Parent>> {
    EV_METHOD static unsigned int meta_group_rank() { return (__ev_laneid() & (WHOLE - 1)) / SIZE; }
    EV_METHOD static unsigned int meta_group_size() { return WHOLE / SIZE; }
};
// A tile whose type does not name the parent remembers.
template <unsigned int SIZE> struct __ev_place<SIZE, __ev_no_parent> {
    EV_METHOD unsigned int meta_group_rank() const { return rank; }
    EV_METHOD unsigned int meta_group_size() const { return size; }
    unsigned int rank, size;
};
// SIZE consecutive threads of a block, a power of two, 32 at most.
template <unsigned int SIZE, typename Parent> class thread_block_tile : public __ev_place<SIZE, Parent> {
    static_assert(SIZE <= 32 && (SIZE & (SIZE - 1)) == 0, "the emulator's headers have tiles of 1, 2, 4, 8, 16 or 32 threads");
    EV_METHOD static unsigned int mask() { return SIZE == 32 ? ~0u : ((1u << (SIZE & 31)) - 1) << (__ev_laneid() & ~(SIZE - 1)); }
    EV_METHOD static unsigned int mine(unsigned int lanes) { return SIZE == 32 ? lanes : (lanes & mask()) >> (__ev_laneid() & ~(SIZE - 1)); }

   public:
    thread_block_tile() = default;
    template <typename Other> EV_METHOD thread_block_tile(const thread_block_tile<SIZE, Other>& tile)
        : __ev_place<SIZE, Parent>{tile.meta_group_rank(), tile.meta_group_size()} {}
    EV_METHOD static void sync() { __syncwarp(mask()); }
    EV_METHOD static unsigned int thread_rank() { return __ev_laneid() & (SIZE - 1); }
    EV_METHOD static constexpr unsigned int size() { return SIZE; }
    EV_METHOD static constexpr unsigned int num_threads() { return SIZE; }
    EV_GROUP_SHUFFLE(shfl, int)
    EV_GROUP_SHUFFLE(shfl_up, unsigned int)
    EV_GROUP_SHUFFLE(shfl_down, unsigned int)
    EV_GROUP_SHUFFLE(shfl_xor, unsigned int)
    EV_METHOD int any(int predicate) const { return mine(__ballot_sync(mask(), predicate)) != 0; }
    EV_METHOD int all(int predicate) const { return mine(__ballot_sync(mask(), !predicate)) == 0; }
    EV_METHOD unsigned int ballot(int predicate) const { return mine(__ballot_sync(mask(), predicate)); }
    template <typename T> EV_METHOD unsigned int match_any(T x) const { return mine(__match_any_sync(mask(), x)); }
    EV_METHOD coalesced_group all_of() const;
    template <typename T> EV_METHOD unsigned int match_all(T x, int& same) const { return mine(__match_all_sync(mask(), x, &same)); }
};
template <unsigned int SIZE, typename Parent> EV_STATIC thread_block_tile<SIZE, Parent> tiled_partition(const Parent&) {
    return thread_block_tile<SIZE, Parent>();
}

// The threads of a warp that were active together when it was made.
class coalesced_group {
    unsigned int mask, place, groups;
    EV_METHOD int lane_of(unsigned int rank) const {
        unsigned int rest = mask;
        for (; rank > 0; --rank) rest &= rest - 1;
        return __ffs((int)rest) - 1;
    }
    EV_METHOD unsigned int packed(unsigned int lanes) const {
        unsigned int ranks = 0, rank = 0;
        for (unsigned int rest = mask; rest; rest &= rest - 1, ++rank)
            if (lanes & rest & -rest) ranks |= 1u << rank;
        return ranks;
    }

   public:
    EV_METHOD explicit coalesced_group(unsigned int lanes, unsigned int rank = 0, unsigned int groups = 1)
        : mask(lanes), place(rank), groups(groups) {}
    // The lanes of these ranks.
    EV_METHOD unsigned int lanes(unsigned int ranks) const {
        unsigned int found = 0;
        for (unsigned int rest = mask; rest; rest &= rest - 1, ranks >>= 1)
            if (ranks & 1) found |= rest & -rest;
        return found;
    }
    EV_METHOD void sync() const { __syncwarp(mask); }
    EV_METHOD unsigned int thread_rank() const { return __popc(mask & __ev_lanes_below()); }
    EV_METHOD unsigned int size() const { return __popc(mask); }
    EV_METHOD unsigned int num_threads() const { return size(); }
    EV_METHOD unsigned int meta_group_rank() const { return place; }
    EV_METHOD unsigned int meta_group_size() const { return groups; }
    EV_METHOD int any(int predicate) const { return __any_sync(mask, predicate); }
    EV_METHOD int all(int predicate) const { return __all_sync(mask, predicate); }
    EV_METHOD unsigned int ballot(int predicate) const { return packed(__ballot_sync(mask, predicate)); }
    template <typename T> EV_METHOD unsigned int match_any(T x) const { return packed(__match_any_sync(mask, x)); }
    // Beyond the group's ends a thread keeps its own value.
    template <typename T> EV_METHOD T shfl(T x, int rank) const { return moved(x, lane_of((unsigned int)rank % size())); }
    template <typename T> EV_METHOD T shfl_up(T x, unsigned int by) const {
        const unsigned int rank = thread_rank();
        return moved(x, lane_of(rank >= by ? rank - by : rank));
    }
    template <typename T> EV_METHOD T shfl_down(T x, unsigned int by) const {
        const unsigned int rank = thread_rank();
        return moved(x, lane_of(rank + by < size() ? rank + by : rank));
    }

   private:
    template <typename T> EV_METHOD T moved(T x, int lane) const { return __ev_shuffled(x, mask, lane); }
};
template <unsigned int SIZE, typename Parent> EV_METHOD coalesced_group thread_block_tile<SIZE, Parent>::all_of() const { return coalesced_group(mask()); }
EV coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }
// The group's threads in pieces of SIZE by rank; the last may be smaller.
EV coalesced_group tiled_partition(const coalesced_group& group, unsigned int size) {
    const unsigned int piece = group.thread_rank() / size, same = group.match_any(piece);
    return coalesced_group(group.lanes(same), piece, (group.size() + size - 1) / size);
}
template <unsigned int SIZE> EV_STATIC coalesced_group tiled_partition(const coalesced_group& group) { return tiled_partition(group, SIZE); }
// The threads of a group that give the same label, or predicate.
template <typename T> EV_STATIC coalesced_group labeled_partition(const coalesced_group& group, T label) {
    const unsigned int same = group.match_any(label);
    unsigned int rest = group.ballot(true), labels = 0, mine = 0;  // groups are numbered by their first thread
    while (rest) {
        const int first = __ffs((int)rest) - 1;
        const unsigned int alike = group.shfl(same, first);
        if (alike == same) mine = labels;
        rest &= ~alike;
        ++labels;
    }
    return coalesced_group(group.lanes(same), mine, labels);
}
EV coalesced_group binary_partition(const coalesced_group& group, bool predicate) {
    const unsigned int yes = group.ballot(predicate);
    return coalesced_group(group.lanes(predicate ? yes : ~yes & group.ballot(true)), predicate, 2);
}
template <unsigned int SIZE, typename Parent, typename T>
EV_STATIC coalesced_group labeled_partition(const thread_block_tile<SIZE, Parent>& tile, T label) { return labeled_partition(tile.all_of(), label); }
template <unsigned int SIZE, typename Parent>
EV_STATIC coalesced_group binary_partition(const thread_block_tile<SIZE, Parent>& tile, bool predicate) { return binary_partition(tile.all_of(), predicate); }
#undef EV_GROUP_SHUFFLE
#undef EV_PIECES

// Any of the groups of a block.
class thread_group {
    unsigned int mask, ranks, rank;
    bool block;

   public:
    EV_METHOD thread_group(const thread_block&) : mask(0), ranks(__ev_size()), rank(__ev_rank()), block(true) {}
    EV_METHOD thread_group(const coalesced_group& group) : mask(group.lanes(~0u)), ranks(group.size()), rank(group.thread_rank()), block(false) {}
    template <unsigned int SIZE, typename Parent> EV_METHOD thread_group(const thread_block_tile<SIZE, Parent>& tile) : thread_group(tile.all_of()) {}
    EV_METHOD void sync() const {
        if (block) __syncthreads();
        else __syncwarp(mask);
    }
    EV_METHOD unsigned int thread_rank() const { return rank; }
    EV_METHOD unsigned int size() const { return ranks; }
    EV_METHOD unsigned int num_threads() const { return ranks; }
};
// Pieces of a block; `size` is a power of two, 32 at most.
EV thread_group tiled_partition(const thread_block&, unsigned int size) {
    const unsigned int first = __ev_laneid() & ~(size - 1);
    return coalesced_group((size >= 32 ? ~0u : (1u << size) - 1) << (first & 31), __ev_rank() / size, (__ev_size() + size - 1) / size);
}

template <typename Group> EV_STATIC void sync(const Group& group) { group.sync(); }
template <typename Group> EV_STATIC unsigned int thread_rank(const Group& group) { return group.thread_rank(); }
template <typename Group> EV_STATIC unsigned int group_size(const Group& group) { return group.size(); }
// One thread of the group runs the function.
template <typename Group, typename F> EV_STATIC void invoke_one(const Group& group, F&& f) {
    if (group.thread_rank() == 0) f();
}
}  // namespace cooperative_groups
