// Tables in constant memory, read at the same and at different places by the lanes of a warp: CRC-32 with a nibble table.
__constant__ unsigned int crc_table[16] = {
    0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
    0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
__constant__ struct {
    float scale;
    short bias[3];
    char tag;
} settings = {0.5f, {-1, 2, -30000}, 'q'};
__constant__ double grid_points[2][3] = {{0.0, 0.5, 1.0}, {-1.0, 1e-300, 3.0}};

extern "C" __global__ void constant_table(const unsigned char* data, unsigned int* crc, float* scaled, double* points, int length, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int c = 0xffffffffu;
    for (int k = 0; k < length; ++k) {
        unsigned char byte = data[i * length + k];
        c = crc_table[(c ^ byte) & 15] ^ (c >> 4);
        c = crc_table[(c ^ (byte >> 4)) & 15] ^ (c >> 4);
    }
    crc[i] = ~c;
    scaled[i] = settings.scale * settings.bias[i % 3] + settings.tag;
    points[i] = grid_points[i & 1][i % 3];
}
