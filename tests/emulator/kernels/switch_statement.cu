// A small stack machine: dense and sparse switches with fall-through, one program a thread.
extern "C" __global__ void switch_statement(const unsigned char* code, int length, const int* input, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char* program = code + i * length;
    unsigned a = input[i], b = 1;  // they wrap around
    for (int pc = 0; pc < length; ++pc) {
        switch (program[pc]) {
            case 0: a += b; break;
            case 1: a -= b; break;
            case 2: b = a; break;
            case 3: a *= 3;  // fall through
            case 4: a ^= 0x55; break;
            case 5: a = -a; break;
            case 6:
            case 7: b += 7; break;
            case 8: if ((int)a > 0) break; a = 1 - a; break;
            case 9: a = (int)a < (int)b ? b : a; break;
            default: pc += 1; break;
        }
        switch (a & 0xff00) {
            case 0x0100: b ^= 1; break;
            case 0x1000: b ^= 2; break;
            case 0x7f00: b ^= 4; break;
        }
    }
    out[i] = (int)(a * 31 + b);
}
