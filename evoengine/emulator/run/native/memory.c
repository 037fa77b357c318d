/* Memory by lanes: for hosts whose gathers are slow or missing, and cp.async. Addresses are the host's, of any alignment. */
#include "lanes.h"

#define BY_WIDTH(bits, type)                                                                                                            \
    typedef type any##bits __attribute__((aligned(1)));                                                                                 \
    void ev_gather_##bits(const uint64_t *address, uint32_t mask, type *out) {                                                          \
        EACH_LANE(lane, mask) out[lane] = *(const any##bits *)address[lane];                                                            \
    }                                                                                                                                   \
    void ev_scatter_##bits(const uint64_t *address, uint32_t mask, const type *value) {                                                 \
        EACH_LANE(lane, mask) *(any##bits *)address[lane] = value[lane];                                                                \
    }
BY_WIDTH(8, uint8_t)
BY_WIDTH(16, uint16_t)
BY_WIDTH(32, uint32_t)
BY_WIDTH(64, uint64_t)

typedef uint8_t u8x16 __attribute__((ext_vector_type(16), aligned(1)));

void ev_copy_async(const uint32_t *shared_offset, uint8_t *shared, const uint64_t *global, const uint32_t *source_bytes, uint32_t bytes,
                   uint32_t mask) {
    EACH_LANE(lane, mask) {
        uint8_t *to = shared + shared_offset[lane];
        const uint8_t *from = (const uint8_t *)global[lane];
        uint32_t given = source_bytes[lane];
        if (bytes == 16 && given >= 16)
            *(u8x16 *)to = *(const u8x16 *)from;
        else
            for (uint32_t i = 0; i < bytes; ++i)
                to[i] = i < given ? from[i] : 0;
    }
}
