/* evoengine
name: require_oracle_layernorm
precision: fp32
summary: "requirements that fail in a hidden case only: the name in the message is its size"
let:
  VEC: C % 4 == 0
  PER: ceil_div(C, 1024) if C % 4 == 0 else ceil_div(C, 256)
  n1: 1
  n2: 2
  n3: 3
  n4: 4
  n5: 5
  n6: 6
  n7: 7
  n8: 8
  n9: 9
  n10: 10
  n11: 11
  n12: 12
  n13: 13
  n14: 14
  n15: 15
  n16: 16
  n17: 17
  n18: 18
  n19: 19
  n20: 20
  n21: 21
  n22: 22
  n23: 23
  n24: 24
  n25: 25
  n26: 26
  n27: 27
  n28: 28
  n29: 29
  n30: 30
  n31: 31
  n32: 32
  n33: 33
  n34: 34
  n35: 35
  n36: 36
  n37: 37
  n38: 38
  n39: 39
  n40: 40
  n41: 41
  n42: 42
  n43: 43
  n44: 44
  n45: 45
  n46: 46
  n47: 47
  n48: 48
  n49: 49
  n50: 50
  n51: 51
  n52: 52
  n53: 53
  n54: 54
  n55: 55
  n56: 56
  n57: 57
  n58: 58
  n59: 59
  n60: 60
  n61: 61
  n62: 62
  n63: 63
  n64: 64
  n65: 65
  n66: 66
  n67: 67
  n68: 68
  n69: 69
  n70: 70
  n71: 71
  n72: 72
  n73: 73
  n74: 74
  n75: 75
  n76: 76
  n77: 77
  n78: 78
  n79: 79
  n80: 80
  n81: 81
  n82: 82
  n83: 83
  n84: 84
  n85: 85
  n86: 86
  n87: 87
  n88: 88
  n89: 89
  n90: 90
  n91: 91
  n92: 92
  n93: 93
  n94: 94
  n95: 95
  n96: 96
  n97: 97
  n98: 98
  n99: 99
  n100: 100
  n101: 101
  n102: 102
  n103: 103
  n104: 104
  n105: 105
  n106: 106
  n107: 107
  n108: 108
  n109: 109
  n110: 110
  n111: 111
  n112: 112
  n113: 113
  n114: 114
  n115: 115
  n116: 116
  n117: 117
  n118: 118
  n119: 119
  n120: 120
  n121: 121
  n122: 122
  n123: 123
  n124: 124
  n125: 125
  n126: 126
  n127: 127
  n128: 128
  n129: 129
  n130: 130
  n131: 131
  n132: 132
  n133: 133
  n134: 134
  n135: 135
  n136: 136
  n137: 137
  n138: 138
  n139: 139
  n140: 140
  n141: 141
  n142: 142
  n143: 143
  n144: 144
  n145: 145
  n146: 146
  n147: 147
  n148: 148
  n149: 149
  n150: 150
  n151: 151
  n152: 152
  n153: 153
  n154: 154
  n155: 155
  n156: 156
  n157: 157
  n158: 158
  n159: 159
  n160: 160
  n161: 161
  n162: 162
  n163: 163
  n164: 164
  n165: 165
  n166: 166
  n167: 167
  n168: 168
  n169: 169
  n170: 170
  n171: 171
  n172: 172
  n173: 173
  n174: 174
  n175: 175
  n176: 176
  n177: 177
  n178: 178
  n179: 179
  n180: 180
  n181: 181
  n182: 182
  n183: 183
  n184: 184
  n185: 185
  n186: 186
  n187: 187
  n188: 188
  n189: 189
  n190: 190
  n191: 191
  n192: 192
  n193: 193
  n194: 194
  n195: 195
  n196: 196
  n197: 197
  n198: 198
  n199: 199
  n200: 200
  n201: 201
  n202: 202
  n203: 203
  n204: 204
  n205: 205
  n206: 206
  n207: 207
  n208: 208
  n209: 209
  n210: 210
  n211: 211
  n212: 212
  n213: 213
  n214: 214
  n215: 215
  n216: 216
  n217: 217
  n218: 218
  n219: 219
  n220: 220
  n221: 221
  n222: 222
  n223: 223
  n224: 224
  n225: 225
  n226: 226
  n227: 227
  n228: 228
  n229: 229
  n230: 230
  n231: 231
  n232: 232
  n233: 233
  n234: 234
  n235: 235
  n236: 236
  n237: 237
  n238: 238
  n239: 239
  n240: 240
  n241: 241
  n242: 242
  n243: 243
  n244: 244
  n245: 245
  n246: 246
  n247: 247
  n248: 248
  n249: 249
  n250: 250
  n251: 251
  n252: 252
  n253: 253
  n254: 254
  n255: 255
  n256: 256
  n257: 257
  n258: 258
  n259: 259
  n260: 260
  n261: 261
  n262: 262
  n263: 263
  n264: 264
  n265: 265
  n266: 266
  n267: 267
  n268: 268
  n269: 269
  n270: 270
  n271: 271
  n272: 272
  n273: 273
  n274: 274
  n275: 275
  n276: 276
  n277: 277
  n278: 278
  n279: 279
  n280: 280
  n281: 281
  n282: 282
  n283: 283
  n284: 284
  n285: 285
  n286: 286
  n287: 287
  n288: 288
  n289: 289
  n290: 290
  n291: 291
  n292: 292
  n293: 293
  n294: 294
  n295: 295
  n296: 296
  n297: 297
  n298: 298
  n299: 299
require:
  - N != n1
  - N != n2
  - N != n3
  - N != n4
  - N != n5
  - N != n6
  - N != n7
  - N != n8
  - N != n9
  - N != n10
  - N != n11
  - N != n12
  - N != n13
  - N != n14
  - N != n15
  - N != n16
  - N != n17
  - N != n18
  - N != n19
  - N != n20
  - N != n21
  - N != n22
  - N != n23
  - N != n24
  - N != n25
  - N != n26
  - N != n27
  - N != n28
  - N != n29
  - N != n30
  - N != n31
  - N != n32
  - N != n33
  - N != n34
  - N != n35
  - N != n36
  - N != n37
  - N != n38
  - N != n39
  - N != n40
  - N != n41
  - N != n42
  - N != n43
  - N != n44
  - N != n45
  - N != n46
  - N != n47
  - N != n48
  - N != n49
  - N != n50
  - N != n51
  - N != n52
  - N != n53
  - N != n54
  - N != n55
  - N != n56
  - N != n57
  - N != n58
  - N != n59
  - N != n60
  - N != n61
  - N != n62
  - N != n63
  - N != n64
  - N != n65
  - N != n66
  - N != n67
  - N != n68
  - N != n69
  - N != n70
  - N != n71
  - N != n72
  - N != n73
  - N != n74
  - N != n75
  - N != n76
  - N != n77
  - N != n78
  - N != n79
  - N != n80
  - N != n81
  - N != n82
  - N != n83
  - N != n84
  - N != n85
  - N != n86
  - N != n87
  - N != n88
  - N != n89
  - N != n90
  - N != n91
  - N != n92
  - N != n93
  - N != n94
  - N != n95
  - N != n96
  - N != n97
  - N != n98
  - N != n99
  - N != n100
  - N != n101
  - N != n102
  - N != n103
  - N != n104
  - N != n105
  - N != n106
  - N != n107
  - N != n108
  - N != n109
  - N != n110
  - N != n111
  - N != n112
  - N != n113
  - N != n114
  - N != n115
  - N != n116
  - N != n117
  - N != n118
  - N != n119
  - N != n120
  - N != n121
  - N != n122
  - N != n123
  - N != n124
  - N != n125
  - N != n126
  - N != n127
  - N != n128
  - N != n129
  - N != n130
  - N != n131
  - N != n132
  - N != n133
  - N != n134
  - N != n135
  - N != n136
  - N != n137
  - N != n138
  - N != n139
  - N != n140
  - N != n141
  - N != n142
  - N != n143
  - N != n144
  - N != n145
  - N != n146
  - N != n147
  - N != n148
  - N != n149
  - N != n150
  - N != n151
  - N != n152
  - N != n153
  - N != n154
  - N != n155
  - N != n156
  - N != n157
  - N != n158
  - N != n159
  - N != n160
  - N != n161
  - N != n162
  - N != n163
  - N != n164
  - N != n165
  - N != n166
  - N != n167
  - N != n168
  - N != n169
  - N != n170
  - N != n171
  - N != n172
  - N != n173
  - N != n174
  - N != n175
  - N != n176
  - N != n177
  - N != n178
  - N != n179
  - N != n180
  - N != n181
  - N != n182
  - N != n183
  - N != n184
  - N != n185
  - N != n186
  - N != n187
  - N != n188
  - N != n189
  - N != n190
  - N != n191
  - N != n192
  - N != n193
  - N != n194
  - N != n195
  - N != n196
  - N != n197
  - N != n198
  - N != n199
  - N != n200
  - N != n201
  - N != n202
  - N != n203
  - N != n204
  - N != n205
  - N != n206
  - N != n207
  - N != n208
  - N != n209
  - N != n210
  - N != n211
  - N != n212
  - N != n213
  - N != n214
  - N != n215
  - N != n216
  - N != n217
  - N != n218
  - N != n219
  - N != n220
  - N != n221
  - N != n222
  - N != n223
  - N != n224
  - N != n225
  - N != n226
  - N != n227
  - N != n228
  - N != n229
  - N != n230
  - N != n231
  - N != n232
  - N != n233
  - N != n234
  - N != n235
  - N != n236
  - N != n237
  - N != n238
  - N != n239
  - N != n240
  - N != n241
  - N != n242
  - N != n243
  - N != n244
  - N != n245
  - N != n246
  - N != n247
  - N != n248
  - N != n249
  - N != n250
  - N != n251
  - N != n252
  - N != n253
  - N != n254
  - N != n255
  - N != n256
  - N != n257
  - N != n258
  - N != n259
  - N != n260
  - N != n261
  - N != n262
  - N != n263
  - N != n264
  - N != n265
  - N != n266
  - N != n267
  - N != n268
  - N != n269
  - N != n270
  - N != n271
  - N != n272
  - N != n273
  - N != n274
  - N != n275
  - N != n276
  - N != n277
  - N != n278
  - N != n279
  - N != n280
  - N != n281
  - N != n282
  - N != n283
  - N != n284
  - N != n285
  - N != n286
  - N != n287
  - N != n288
  - N != n289
  - N != n290
  - N != n291
  - N != n292
  - N != n293
  - N != n294
  - N != n295
  - N != n296
  - N != n297
  - N != n298
  - N != n299
launches:
  - kernel: layernorm<PER, VEC>
    grid: [N]
    block: [256]
    args: [x, weight, bias, out, N, C, eps]
*/
// Requirements that fail in a hidden case only: the name in the message is its size.
// One block a row; the row stays in registers, so that memory is read once.
constexpr int THREADS = 256;
struct alignas(16) Four { float v[4]; };
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float part[THREADS / 32];
#pragma unroll
    for (int s = 16; s; s /= 2) x += __shfl_xor_sync(~0u, x, s);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < THREADS / 32; ++i) sum += part[i];
    return sum;
}
template <int PER, bool VEC, class LOAD, class STORE>
__device__ __forceinline__ void normalise(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ out,
                                          int row, int C, float eps, LOAD load, STORE store, bool known = false, float mean = 0.0f, float inverse = 0.0f) {
    constexpr int V = VEC ? 4 : 1;
    float held[PER][V];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int at = (i * THREADS + threadIdx.x) * V;
#pragma unroll
        for (int j = 0; j < V; ++j) held[i][j] = 0.0f;
        if (at < C) {
            if constexpr (VEC) {
                const float4 p = load(x + size_t(row) * C + at);
                held[i][0] = p.x, held[i][1] = p.y, held[i][2] = p.z, held[i][3] = p.w;
            } else
                held[i][0] = x[size_t(row) * C + at];
#pragma unroll
            for (int j = 0; j < V; ++j) sum += held[i][j];
        }
    }
    if (!known) {
        mean = block_sum(sum) / C;
        float deviations = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = 0; i < PER; ++i)
            if ((i * THREADS + threadIdx.x) * V < C)
#pragma unroll
                for (int j = 0; j < V; ++j) {
                    const float d = held[i][j] - mean;
                    deviations += d, squares += d * d;
                }
        const float error = block_sum(deviations) / C;
        inverse = 1.0f / sqrtf(fmaxf(block_sum(squares) / C - error * error, 0.0f) + eps);
        mean += error;
    }
#pragma unroll
    for (int i = 0; i < PER; ++i) {
        const int at = (i * THREADS + threadIdx.x) * V;
        if (at >= C) continue;
        if constexpr (VEC) {
            const Four fw = *reinterpret_cast<const Four*>(w + at), fb = *reinterpret_cast<const Four*>(b + at);
            float4 y;
            y.x = (held[i][0] - mean) * inverse * fw.v[0] + fb.v[0], y.y = (held[i][1] - mean) * inverse * fw.v[1] + fb.v[1];
            y.z = (held[i][2] - mean) * inverse * fw.v[2] + fb.v[2], y.w = (held[i][3] - mean) * inverse * fw.v[3] + fb.v[3];
            store(out + size_t(row) * C + at, y);
        } else
            out[size_t(row) * C + at] = (held[i][0] - mean) * inverse * w[at] + b[at];
    }
}
struct PlainLoad { __device__ __forceinline__ float4 operator()(const float* p) const { return *reinterpret_cast<const float4*>(p); } };
struct PlainStore { __device__ __forceinline__ void operator()(float* p, float4 y) const { *reinterpret_cast<float4*>(p) = y; } };

template <int PER, bool VEC>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* x, const float* w, const float* b, float* out, int N, int C, float eps) {
    normalise<PER, VEC>(x, w, b, out, blockIdx.x, C, eps, PlainLoad{}, PlainStore{});
}
