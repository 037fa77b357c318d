/* Loads and stores lane by lane, for hosts with slow or no gathers, and cp.async. Addresses are host addresses of any
   alignment. */
#include "lanes.h"

#define ALL_LANES 0xffffffffu

#define BY_WIDTH(bits, type)                                                                                                            \
    typedef type any##bits __attribute__((aligned(1)));                                                                                 \
    void ev_gather_##bits(const uint64_t *address, uint32_t mask, type *out) {                                                          \
        EACH_LANE(lane, mask) out[lane] = *(const any##bits *)address[lane];                                                            \
    }                                                                                                                                   \
    void ev_scatter_##bits(const uint64_t *address, uint32_t mask, const type *value) {                                                 \
        if (mask == ALL_LANES)                                                                                                          \
            for (int lane = 0; lane < LANES; ++lane)                                                                                    \
                *(any##bits *)address[lane] = value[lane];                                                                              \
        else                                                                                                                            \
            EACH_LANE(lane, mask) *(any##bits *)address[lane] = value[lane];                                                            \
    }
BY_WIDTH(8, uint8_t)
BY_WIDTH(16, uint16_t)
BY_WIDTH(32, uint32_t)
BY_WIDTH(64, uint64_t)

typedef uint8_t u8x16 __attribute__((ext_vector_type(16), aligned(1)));

EV_INLINE void copy_lane(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t given) {
    if (bytes == 16 && given >= 16)
        *(u8x16 *)to = *(const u8x16 *)from;
    else
        for (uint32_t i = 0; i < bytes; ++i)
            to[i] = i < given ? from[i] : 0;
}

/* Copies mostly wait for global memory. The fewer instructions a lane takes, the more copies overlap; and as tiles are mostly
   read front to back, the lines that later copies will likely need are prefetched. */
enum { LANES_A_LINE = 64 / 16, PREFETCH_BYTES = 8192 };

void ev_copy_async(const uint32_t *shared_offset, uint8_t *shared, const uint64_t *global, const uint32_t *source_bytes, uint32_t bytes,
                   uint32_t mask) {
    if (mask == ALL_LANES && bytes == 16 && !any(LOAD(u32x32, source_bytes) < 16u))
        for (int lane = 0; lane < LANES; ++lane) {
            if (lane % LANES_A_LINE == 0)
                __builtin_prefetch((const uint8_t *)global[lane] + PREFETCH_BYTES);
            *(u8x16 *)(shared + shared_offset[lane]) = *(const u8x16 *)global[lane];
        }
    else
        EACH_LANE(lane, mask) copy_lane(shared + shared_offset[lane], (const uint8_t *)global[lane], bytes, source_bytes[lane]);
}
