"""Mistakes of tiles, pipelines, shares of blocks and running maxima are mended and said."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from tests.evaluate.repair.parts_kernel import repairing
from tests.evaluate.repair.tiles_kernel import assert_said, kernel

# kind of change, the wrong statements, the right ones, what is said
MISTAKES = [
    ("factor of a digit missing", "f((begin + warp) * BM);", "f((begin * WARPS + warp) * BM);",
     "some parts are taken several times and others never"),
    ("next in a product", "f(2 * begin - 30);", "f(2 * (begin + 1) - 30);", "one more or one less is meant"),
    ("one thread where several are meant", "if (threadIdx.x == 0) totals[threadIdx.x] = 0;",
     "if (threadIdx.x < BM) totals[threadIdx.x] = 0;", "the others are left as they were"),
    ("sum in a type too narrow", "int all = 0; for (int i = 0; i < K; ++i) all += table[i];",
     "long long all = 0; for (int i = 0; i < K; ++i) all += table[i];", "its upper bits are lost"),
    ("atomic operation of the other sign", "atomicMax(bits + lane, (int)rank(total));",
     "atomicMax((unsigned*)(bits + lane), (unsigned)(rank(total)));", "count as negative"),
    ("division that rounds towards zero", "f(begin / (1 << BN), begin & 7);", "f((begin >> BN), begin & 7);",
     "rounds down"),
    ("division that rounds towards zero", "f(begin / 8);", "f((begin >> 3));", "rounds down"),
    ("pitch of another array", "f(right[lane * A_PITCH + warp]);", "f(right[lane * B_PITCH + warp]);",
     "the pitch is that of another array"),
    ("row and column of a tile exchanged", "right[warp * B_PITCH + lane] = 0;", "right[lane * B_PITCH + warp] = 0;",
     "it is transposed"),
    ("tile read as it was written", "square[warp][lane] = total; sums[lane] = square[warp][lane];",
     "square[warp][lane] = total; sums[lane] = square[lane][warp];", "it is not transposed"),
    ("flat index of padded rows",
     "for (int i = threadIdx.x; i < BM * BN; i += 128) sums[i] = right[i]; f(right[lane * B_PITCH]);",
     "for (int i = threadIdx.x; i < BM * BN; i += 128) sums[i] = right[i / BN * B_PITCH + i % BN];"
     " f(right[lane * B_PITCH]);", "the padding of those before"),
    ("second part of a thread's own",
     "for (int i = 0; i < 8; ++i) { const int r = first + i; f(r, i / 4 * 64); }",
     "for (int i = 0; i < 8; ++i) { const int r = first + i % 4 + i / 4 * 64; f(r, i / 4 * 64); }",
     "lies further on"),
    ("neighbours along the other axis", "f(right[0], right[1], right[8]);",
     "f(right[0], right[B_PITCH], right[8 * B_PITCH]);", "the neighbours of a row are taken"),
    ("neighbours along the other axis", "f(right[0], right[B_PITCH], right[8 * B_PITCH]);",
     "f(right[0], right[1], right[8]);", "or the other way round"),
    ("columns in turns or together", "sums[warp * 32 + lane] = total;", "sums[lane * OWN + warp] = total;",
     "neighbouring ones"),
    ("columns in turns or together", "sums[lane * OWN + warp] = total;", "sums[warp * 32 + lane] = total;",
     "every 32nd one"),
    ("row of a tile missing", "for (int d = 0; d < BM; ++d) f(right[lane]);",
     "for (int d = 0; d < BM; ++d) f(right[d * B_PITCH + lane]);", "reads its first row again"),
    ("pair of a lane's columns", 'f("m16n8k16", column + quad);', 'f("m16n8k16", column + quad * 2);',
     "must be doubled"),
    ("pair of a lane's columns", 'f("m16n8k16", column + lane % 4 + 1);', 'f("m16n8k16", column + lane % 4 * 2 + 1);',
     "must be doubled"),
    ("pair of a lane's columns", 'f("m16n8k16", column + (lane & 3) + 1);',
     'f("m16n8k16", column + (lane & 3) * 2 + 1);', "must be doubled"),
    ("row of the step of a loop", 'for (int k = 0; k < BM; k += 16) f("ldmatrix", right[lane % 16 * B_PITCH]);',
     'for (int k = 0; k < BM; k += 16) f("ldmatrix", right[(k + lane % 16) * B_PITCH]);',
     "each step reads the same rows"),
    ("swizzle not asked for", "f((warp + lane) * 64 + quad * 8);", "f(place(warp + lane, quad));",
     "without the swizzle"),
    ("begin of the part behind",
     "float* one = memory; float* two = one + 64; float* three = reinterpret_cast<float*>(two); f(three);",
     "float* one = memory; float* two = one + 64; float* three = reinterpret_cast<float*>(two + 64); f(three);",
     "two parts of shared memory overlap"),
    ("part of shared memory not cleared",
     "float* one = memory; float* two = one + 64; for (int i = threadIdx.x; i < BM; i += 128) one[i] += two[i];",
     "float* one = memory; float* two = one + 64; for (int i = threadIdx.x; i < 64; i += 128) one[i] = 0.0f;"
     " for (int i = threadIdx.x; i < BM; i += 128) one[i] += two[i];", "is added to and never cleared"),
    ("stage of another step", "for (int step = 0; step < K; ++step) f(step % STAGES);",
     "for (int step = 0; step < K; ++step) f((step - 1) % STAGES);", "the stage of another step"),
    ("stage of another step",
     "for (int step = 0; step < K; ++step) { const int next = step + STAGES; f(next % STAGES); }",
     "for (int step = 0; step < K; ++step) { const int next = step + STAGES; f(step % STAGES); }",
     "the stage of another step"),
    ("steps ahead", "const int next = begin + 1; f(next);", "const int next = begin + STAGES - 1; f(next);",
     "a step is skipped"),
    ("steps ahead", "f(begin + STAGES);", "f(begin + STAGES - 1);", "a step is skipped"),
    ("steps ahead", "f(begin + STAGES - 1);", "f(begin + 1);", "a step is skipped"),
    ("step that its condition asks for", "if (begin + BN < K) fetch(begin);", "if (begin + BN < K) fetch(begin + BN);",
     "this step is taken again"),
    ("other buffer of two", "f(left[(begin & 1)]);", "f(left[(~begin & 1)]);", "the wrong one of two buffers"),
    ("other buffer of two", "f(left[begin % 2]);", "f(left[(begin + 1) % 2]);", "the wrong one of two buffers"),
    ("other stage of a buffer", "const int now = begin % 2; f(now);", "const int now = begin % 2; f(1 - now);",
     "the wrong stage"),
    ("other stage of a buffer", "begin ^= 1; f(begin);", "begin ^= 1; f(begin ^ 1);", "the wrong stage"),
    ("groups of copies by one", "wait<STAGES - 1>();", "wait<STAGES - 2>();", ""),
    ("begin of each round missing, of a declaration",
     "float own[2] = {}; for (int r = 0; r < K; ++r) { own[0] += a[r]; f(own[0] + own[1]); }",
     "for (int r = 0; r < K; ++r) { float own[2] = {}; own[0] += a[r]; f(own[0] + own[1]); }",
     "not begun anew"),
    ("second of a pair unchecked", "if (begin < N) { sums[0] = total; sums[1] = top; }",
     "if (begin < N) { sums[0] = total; if (begin + 1 < N) sums[1] = top; }", "over the first element of the next row"),
    ("second of a pair unchecked", "if (begin >= N) return; sums[begin] = total; sums[begin + 1] = top;",
     "if (begin >= N) return; sums[begin] = total; if (begin + 1 < N) sums[begin + 1] = top;", "begin + 1 < N"),
    ("own part counted again",
     "const int part = blockIdx.z; for (int i = 0; i < (int)gridDim.z; ++i) { total += sums[i]; f(part); }",
     "const int part = blockIdx.z; for (int i = 0; i < (int)gridDim.z; ++i) { if (i == part) continue;"
     " total += sums[i]; f(part); }", "the own part is added twice"),
    ("groups of copies by one", 'asm volatile("cp.async.wait_group 2;" ::: "memory");',
     'asm volatile("cp.async.wait_group 1;" ::: "memory");', "lets one group too many be pending"),
    ("other stage of a buffer", "f(left[quad][lane]);", "f(left[quad ^ 1][lane]);", "the wrong stage"),
    ("sum begun with a part", "float all = sums[lane]; for (int i = 0; i < K; ++i) all += sums[i]; f(all);",
     "float all = 0.0f; for (int i = 0; i < K; ++i) all += sums[i]; f(all);", "which counts twice"),
    ("statement before its guard", "for (int i = lane; i < K; i += 32) { begin += 4; if (i >= N) continue; f(begin); }",
     "for (int i = lane; i < K; i += 32) { if (i >= N) continue; begin += 4; f(begin); }", "before the condition (guard)"),
    ("matrices of a load exchanged", 'f("ldmatrix", lane / 16, lane / 8 % 2, lane % 8);',
     'f("ldmatrix", (lane / 8 % 2), (lane / 16), lane % 8);', "the second and the third 8x8 matrix"),
    ("matrices of a load exchanged", 'f("ldmatrix", lane & 15, (lane >> 4) * 8);',
     'f("ldmatrix", ((lane >> 4) * 8 + (lane & 7)), ((lane >> 3 & 1)) * 8);', "the second and the third 8x8 matrix"),
    ("half of a fragment", 'f("mma", sum[quad % 2]);', 'f("mma", sum[quad / 2 % 2]);', "row half"),
    ("half of a fragment", 'f("mma", sum[quad / 2 % 2]);', 'f("mma", sum[quad % 2]);', "row half"),
    ("own part counted again", "const int part = blockIdx.z; for (int i = 0; i < K; ++i) total += sums[i + part];",
     "const int part = blockIdx.z; for (int i = 0; i < K; ++i) { if (i == part) continue; total += sums[i + part]; }",
     "the own part is added twice"),
    ("groups of copies by one", "__pipeline_wait_prior(1);", "__pipeline_wait_prior(0);", ""),
    ("wait for an emptied stage missing",
     "for (int r = 0; r < K; ++r) { arrive_at(r % STAGES + 1); }"
     " for (int r = 0; r < K; ++r) { wait_at(r % STAGES); f(r); arrive_at(r % STAGES); }",
     "for (int r = 0; r < K; ++r) { if (r >= STAGES) wait_at(r % STAGES + 1); arrive_at(r % STAGES + 1); }"
     " for (int r = 0; r < K; ++r) { wait_at(r % STAGES); f(r); arrive_at(r % STAGES); }",
     "none of the writers waits"),
    ("stage never given back",
     "for (int r = 0; r < K; ++r) { wait_at(r % STAGES + 1); arrive_at(r % STAGES); }"
     " for (int r = 0; r < K; ++r) { wait_at(r % STAGES); f(r); }",
     "for (int r = 0; r < K; ++r) { wait_at(r % STAGES + 1); arrive_at(r % STAGES); }"
     " for (int r = 0; r < K; ++r) { wait_at(r % STAGES); f(r); arrive_at(r % STAGES + 1); }",
     "no reader says that a stage is empty"),
    ("last statement of a branch for all", "if (begin < K) { load(memory, lane, warp); commit(); }",
     "if (begin < K) load(memory, lane, warp); commit();", "must be done always"),
    ("wait for copies missing", "__pipeline_memcpy_async(memory, a, 16); if (begin) { keep(); } __syncthreads();",
     "__pipeline_memcpy_async(memory, a, 16); if (begin) { keep(); __pipeline_wait_prior(0); } __syncthreads();",
     "are not waited for"),
    ("value of its namesake",
     "{ const int c = column + lane % 8 * 2; f(c); } { const int c = lane % 8 * 2; g(c); }",
     "{ const int c = column + lane % 8 * 2; f(c); } { const int c = column + lane % 8 * 2; g(c); }",
     "the variable of the same name"),
    ("offset of the pointer beside",
     "const half* keys = a + size_t(warp / 4) * N * 64; const half* values = b + size_t(warp) * N * 64;",
     "const half* keys = a + size_t(warp / 4) * N * 64; const half* values = b + size_t(warp / 4) * N * 64;",
     "the pointer beside it"),
    ("factor of a like product", "f(warp * quad * N + lane, warp * N + first);",
     "f(warp * quad * N + lane, warp * quad * N + first);", "a factor of a stride is missing"),
    ("arguments in another order than elsewhere", "load(memory, lane, warp); load(memory, warp, lane);",
     "load(memory, warp, lane); load(memory, warp, lane);", "in the other order"),
    ("argument as elsewhere, of another name", "load(memory, lane, lane * BN); load(memory, warp, warp);",
     "load(memory, lane, lane * BN); load(memory, warp, warp * BN);", "another call of the function"),
    ("values of two registers exchanged", "mark[0] = f(lane + 8); mark[1] = f(lane + N);",
     "mark[0] = f(lane + N); mark[1] = f(lane + 8);", "two registers of a fragment"),
    ("registers of a fragment exchanged", 'const int a[4] = {f(lane + 8), f(lane), f(N), f(M)}; f("mma", a);',
     'const int a[4] = {f(lane), f(lane + 8), f(N), f(M)}; f("mma", a);', "rows 8 apart or columns 8 apart"),
    ("row and column of a condition exchanged",
     "const int r = begin / BN, c = begin % BN; if (first + c < M && column + r < N) f(r);",
     "const int r = begin / BN, c = begin % BN; if (first + r < M && column + c < N) f(r);",
     "checked against the other's end"),
    ("step along another argument", "f(begin + 8, end);", "f(begin, end + 8);", "the wrong argument"),
    ("term behind a limit", "f(fmaxf(total, 0.0f) + scale);", "f(fmaxf(total + scale, 0.0f));",
     "on the wrong side of a limit"),
    ("term behind a limit", "f(fmaxf(total + scale, 0.0f));", "f(fmaxf(total, 0.0f) + scale);",
     "on the wrong side of a limit"),
    ("quotient in brackets rounded down", "f((M / BM) * N);", "f((M + BM - 1) / BM * N);", "rounded down"),
    ("weight by the maximum missing", "const float w = __expf(top - scale); total += sum[lane];",
     "const float w = __expf(top - scale); total += w * (sum[lane]);", "without its weight"),
    ("rescaling of an element missing",
     "for (int h = 0; h < 4; ++h) { const float w = __expf(top - scale); sum[h] += scale; }",
     "for (int h = 0; h < 4; ++h) { const float w = __expf(top - scale); sum[h] *= w; sum[h] += scale; }",
     "not rescaled when the maximum grows"),
    ("rescaling of an element missing",
     "{ const float w = __expf(top - scale); kept[warp] = w; } { const int g = warp, o = lane; sum[o] += kept[g]; }",
     "{ const float w = __expf(top - scale); kept[warp] = w; } { const int g = warp, o = lane; sum[o] *= kept[g];"
     " sum[o] += kept[g]; }", "not rescaled when the maximum grows"),
    ("new maximum not kept", "for (;;) { const float high = f(top), w = exp2f(top - high); g(w); }",
     "for (;;) { const float high = f(top), w = exp2f(top - high); top = high; g(w); }",
     "the running maximum is not updated"),
    ("guard of a row without keys missing", "const float base = top; f(exp2f(scale - base));",
     "const float base = top == -INFINITY ? 0.0f : top; f(exp2f(scale - base));", "minus infinity"),
    ("guard of an empty sum missing", "f(exp2f(top)); const float share = 1.0f / total; f(share);",
     "f(exp2f(top)); const float share = (total > 0.0f ? 1.0f / total : 0.0f); f(share);", "nothing may have been added"),
    ("value replaced before its difference", "top = scale; const float fade = exp2f(top - scale); f(fade);",
     "const float fade = exp2f(top - scale); top = scale; f(fade);", "is not rescaled"),
    ("weight of what is masked", "if (begin < end) f(0); const float w = exp2f(scale - top); f(w);",
     "if (begin < end) f(0); const float w = begin < end ? exp2f(scale - top) : 0.0f; f(w);", "what is masked"),
    ("scores that nothing scales",
     "for (int s = 16; s; s /= 2) total += __shfl_xor_sync(~0u, total, s); f(expf(total - top));",
     "for (int s = 16; s; s /= 2) total += __shfl_xor_sync(~0u, total, s); total *= scale; f(expf(total - top));",
     "the scores are not scaled"),
    ("sum not set back behind its store",
     "for (; begin < end; ++begin) for (int i = 0; i < 4; ++i) { acc(sum[i]); sums[i] = sum[i]; }",
     "for (; begin < end; ++begin) for (int i = 0; i < 4; ++i) { acc(sum[i]); sums[i] = sum[i]; sum[i] = 0.0f; }",
     "not set back to zero when it has been stored"),
    ("what is stored and read nowhere", "totals[lane] = total; __syncthreads(); f(1.0f / total);",
     "totals[lane] = total; __syncthreads(); f(1.0f / (total + totals[lane]));", "is read nowhere"),
    ("element that nothing has", "f(sum[0], sum[1], sum[1], sum[3]);", "f(sum[0], sum[1], sum[2], sum[3]);",
     "used twice and another one never"),
    ("element that nothing has", "mark[0] = total; mark[0] = top; f(mark[0], mark[1]);",
     "mark[0] = total; mark[1] = top; f(mark[0], mark[1]);", "used twice and another one never"),
    ("element that it was given to", "float high = scale; if (begin) mark[quad] = high; f(total - high);",
     "float high = scale; if (begin) mark[quad] = high; f(total - mark[quad]);", "the one that was kept"),
    ("count of the last part", "const int group = blockIdx.x / 9, rows = BN; f(group * BN + lane % rows);",
     "const int group = blockIdx.x / 9, rows = min(BN, N - group * BN); f(group * BN + lane % rows);",
     "what is left"),
    ("count of the last part", "const int from = blockIdx.x * 256, count = 256; f(count);",
     "const int from = blockIdx.x * 256, count = min(256, N - from); f(count);", "what is left"),
    ("count of the last part, of what is worked out",
     "const int all = N / 8, from = blockIdx.x * 256, count = 256; f(count, all);",
     "const int all = N / 8, from = blockIdx.x * 256, count = min(256, all - from); f(count, all);", "what is left"),
    ("index of the array beside it", "f(sums[lane * 4 + 1], right[begin + 1]);",
     "f(sums[begin + 1], right[begin + 1]);", "the elements of another place"),
    ("step of all lanes", "for (int at = begin + lane; at < N; at += BM) f(at);",
     "for (int at = begin + lane; at < N; at += 32) f(at);", "the number of lanes that share it"),
    ("groups of copies by one", 'asm volatile("cp.async.wait_group %0;" ::"n"(STAGES));',
     'asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));', "group"),
    ("end of the loop for a size", "for (int k = begin; k < end; ++k) if (k + lane < K) f(k);",
     "for (int k = begin; k < end; ++k) if (k + lane < end) f(k);", "the end of the own part"),
    ("end behind the last row", "end = min(K, int(blockIdx.y) * BM);", "end = min(K, int(blockIdx.y + 1) * BM);",
     "not behind its last one"),
    ("step by those that share a loop", "for (int s = warp; s < K; ++s) f(s);",
     "for (int s = warp; s < K; s += WARPS) f(s);", "counted several times"),
    ("share of a block in the grid", "f(blockIdx.x * 32 + lane);", "f(blockIdx.x * 64 + lane);",
     "than the grid is made for"),
    ("as many of each", "for (int i = 0; i < 4; ++i) f(a[lane + i]);", "for (int i = 0; i < 4; ++i) f(a[lane * 4 + i]);",
     "neighbours overlap"),
    ("row of a table missing", "const int s = blockIdx.y; for (int p = 0; p < K; ++p) f(table[p]);",
     "const int s = blockIdx.y; for (int p = 0; p < K; ++p) f(table[s * K + p]);", "all sequences"),
    ("number of a tile for its column",
     "const int tile = blockIdx.y * gridDim.x + blockIdx.x; f(tile, counter[blockIdx.x]);",
     "const int tile = blockIdx.y * gridDim.x + blockIdx.x; f(tile, counter[tile]);", "share one element"),
    ("unit not multiplied again", "total = float(__nv_fp8_e4m3(total / scale));",
     "total = float(__nv_fp8_e4m3(total / scale)) * scale;", "not multiplied by it again"),
    ("count of the last block", "const int ticket = atomicAdd(counter, 1u); if (ticket == N) f(0);",
     "const int ticket = atomicAdd(counter, 1u); if (ticket == N - 1) f(0);", ""),
    ("counter of the last block kept", "if (atomicAdd(&counter[warp], 1u) < N) return; f(0);",
     "if (atomicAdd(&counter[warp], 1u) < N) return; if (threadIdx.x == 0) counter[warp] = 0; f(0);",
     "the counter is not reset"),
    ("share that overwrites the others", "sums[lane] = total;", "atomicAdd(&sums[lane], total);", "overwrite"),
    ("number of another lane not fetched", "for (int k = 0; k < 32; ++k) total += scale * sum[k];",
     "for (int k = 0; k < 32; ++k) total += __shfl_sync(~0u, scale, k) * sum[k];", "a shuffle is missing"),
    ("bytes that are chosen", "f(__byte_perm(M, N, 0x7654));", "f(__byte_perm(M, N, 0x7632));", "the other operand"),
    ("axis of the grid's size", "f(blockIdx.y * gridDim.y + blockIdx.x);", "f(blockIdx.y * gridDim.x + blockIdx.x);",
     "gridDim.x"),
    ("member of the other object", "struct { int count; int got(Box o) { f(count); return 2 * o.count; } };",
     "struct { int count; int got(Box o) { f(count); return 2 * count; } };", "where its own is"),
    ("member of the other object", "struct { int count; int got(Box o) { f(o.count); return 2 * count; } };",
     "struct { int count; int got(Box o) { f(o.count); return 2 * o.count; } };", "where its own is"),
    ("lanes without a part that keep theirs", "if (lane < WARPS) total = totals[lane]; total = lane_sum(total);",
     "total = lane < WARPS ? totals[lane] : decltype(total)(); total = lane_sum(total);", "keep their own old value"),
    ("value of the first lane not broadcast",
     "total += __shfl_down_sync(~0u, total, 16); out[lane] = 2 * total;",
     "total += __shfl_down_sync(~0u, total, 16); out[lane] = 2 * __shfl_sync(~0u, total, 0);",
     "not broadcast: the other lanes use their own"),
    ("reduction in each round as well", "total = total * top + lane_sum(scale); f(lane_sum(total));",
     "total = total * top + scale; f(lane_sum(total));", "once more at the end"),
    ("barrier missing, between uses", "left[0][lane] = total; sums[lane] = left[1][warp];",
     "left[0][lane] = total; __syncthreads(); sums[lane] = left[1][warp];", "a barrier is missing"),
    ("name where its neighbour repeats, int", "int half = begin; f(warp, warp);", "int half = begin; f(half, warp);",
     ""),
    ("value before its update", "const float grown = 0.5f * total + scale; sums[lane] = sqrtf(total);",
     "const float grown = 0.5f * total + scale; sums[lane] = sqrtf(grown);", "from before its update"),
    ("value before its update", "const float grown = fmaf(scale, sums[lane], total); f(sums[lane]);",
     "const float grown = fmaf(scale, sums[lane], total); f(grown);", "the old value"),
    ("elements for bytes", "cp_async(right, sums, end - begin);", "cp_async(right, sums, (end - begin) * 4);",
     "a number of elements is taken"),
    ("elements for bytes", "f(begin < 4 ? begin : 16);", "f(begin < 4 ? begin * 4 : 16);", "only a part is copied"),
    ("elements for bytes", "const int bytes = end > 4 ? 16 : end > 0 ? end : 0;",
     "const int bytes = end > 4 ? 16 : end > 0 ? end * 4 : 0;", "sizeof"),
    ("elements for bytes", "const int bytes = end;", "const int bytes = end * 2;", "sizeof"),
    ("bytes that are chosen", "begin = __byte_perm(begin, end, lane % 2 ? 0x7632 : 0x7610);",
     "begin = __byte_perm(begin, end, lane % 2 ? 0x7632 : 0x5410);", "bytes"),
    ("names of two statements exchanged", "begin = column + warp; end = first + lane;",
     "begin = column + lane; end = first + warp;", "each other's variable"),
    ("names of two statements exchanged", "const int r = column + warp, c = first + lane; f(r, c);",
     "const int r = column + lane, c = first + warp; f(r, c);", "exchanged"),
    ("first values of two variables exchanged", "const float up = sums[lane]; const float low = top * total; f(up, low);",
     "const float up = top * total; const float low = sums[lane]; f(up, low);", "each other's value"),
    ("sum of the first lane alone",
     "for (int step = 16; step; step /= 2) total += __shfl_down_sync(~0u, total, step); f(total);",
     "for (int step = 16; step; step /= 2) total += __shfl_down_sync(~0u, total, step);"
     " total = __shfl_sync(0xffffffffu, total, 0); f(total);", "only lane 0 has it"),
    ("first lane for the last", "begin = 31 - __clz(end);", "begin = __ffs(end) - 1;", "the other end of a vote"),
    ("first lane for the last", "begin = __ffs(end) - 1;", "begin = 31 - __clz(end);", "the other end of a vote"),
    ("summed and not stored", "total += expf(sums[lane] - top);", "total += sums[lane] = expf(sums[lane] - top);",
     "not stored"),
    ("rest that may be zero", "end = last_one ? K % 256 : 256;", "end = last_one ? ((K - 1) % 256 + 1) : 256;",
     "a multiple of it"),
    ("step of a loop beyond its end", "for (; begin < end; begin += STAGES) f(begin);",
     "for (; begin + STAGES <= end; begin += STAGES) f(begin);", "a whole step beyond the end"),
    ("round of all stages", "f(begin % STAGES, begin % 2);", "f(begin % STAGES, begin / STAGES % 2);", "the parity"),
    ("rounds counted backwards", "for (int i = 0; i < BM; ++i) f(sums[lane + i]);",
     "for (int i = 0; i < BM; ++i) f(sums[lane + (BM - 1 - i)]);", "the order is reversed"),
    ("factor missing, of the number of parts", "f(sums + size_t(lane) * 4096);", "f(sums + size_t(lane) * begin * 4096);",
     "lie further apart"),
    ("scale of another length", "total *= 0.125f;", "total *= 0.08838835f;", "another head size"),
    ("factor missing, of another update", "mark[0] *= sums[warp]; mark[1] = kept[lane];", "mark[0] *= sums[warp]; mark[1] = kept[lane] * sums[warp];",
     "is not rescaled"),
    ("assignment", "begin = 255 << end;", "begin |= 255 << end;", "begin"),
    ("lanes of another group joined",
     "for (int step = 1; step < 4; step *= 2) total += __shfl_xor_sync(~0u, total, step);",
     "for (int step = 4; step < 32; step *= 2) total += __shfl_xor_sync(~0u, total, step);", "the wrong lanes"),
    ("lanes of another group joined",
     "total += __shfl_xor_sync(~0u, total, 1); total += __shfl_xor_sync(~0u, total, 2);",
     "total += __shfl_xor_sync(~0u, total, 4); total += __shfl_xor_sync(~0u, total, 8);", "the wrong lanes"),
    ("swizzle wider than a row", "f(begin * 4 + (quad ^ lane));", "f(begin * 4 + (quad ^ ((lane) & 3)));", "leave"),
    ("vectors counted for elements", "++begin;", "begin += OWN;", "for each vector"),
    ("neighbour for the next of a step", "for (int r = first; r < M; r += gridDim.y) f(r + 1);",
     "for (int r = first; r < M; r += gridDim.y) f(r + gridDim.y);", "a whole step"),
    ("sign of bits that are joined", "const short* bits = reinterpret_cast<const short*>(a); f(bits);",
     "const unsigned short* bits = reinterpret_cast<const unsigned short*>(a); f(bits);", "sign-extended"),
    ("elements for bytes", "const int bytes = int(min(end - begin, 4));", "const int bytes = int(min(end - begin, 4)) * 4;",
     "sizeof"),
    ("index transposed, of an extent", "const size_t at = size_t(blockIdx.z) * gridDim.y + blockIdx.y;",
     "const size_t at = size_t(blockIdx.y) * gridDim.z + blockIdx.z;", "transposed"),
    ("reset missing, behind its store",
     "for (int i = 0; i < K; ++i) { total += top; if (i % 8 == 7) sums[i] = total; }",
     "for (int i = 0; i < K; ++i) { total += top; if (i % 8 == 7) { sums[i] = total; total = 0.0f; } }",
     "not set back to zero"),
    ("too many copies pending", "wait_prior(STAGES - 1);", "wait_prior(0);", "the wait is too weak"),
    ("sum of two for a name", "f(lane + quad); begin = first + warp + 1;", "f(lane + quad); begin = first + lane + quad + 1;",
     "the sum of two others"),
    ("operation in half precision", "total = __half2float(__hmul(a[lane], b[lane]));",
     "total = (__half2float(a[lane]) * __half2float(b[lane]));", "in half precision"),
    ("operation in half precision", "total = __half2float(__hfma(__float2half(top), b[lane], __float2half(total)));",
     "total = fmaf((top), __half2float(b[lane]), (total));", "in half precision"),
    ("operation in half precision", "const float2 f = __half22float2(__hmul2(h[begin], __float2half2_rn(scale)));",
     "const float2 f = make_float2(__half22float2(h[begin]).x * (scale), __half22float2(h[begin]).y * (scale));",
     "single precision"),
    ("end of a range unchecked", "f(table[lane] >= begin);", "f(table[lane] >= begin && table[lane + 1] <= end);",
     "only the begin of a range"),
    ("neighbour for the next of a step", "for (int r = first; r < M; r += gridDim.y, begin ^= 1) f(r + 1);",
     "for (int r = first; r < M; r += gridDim.y, begin ^= 1) f(r + gridDim.y);", "a whole step"),
    ("arrival before the work", 'asm volatile("bar.arrive 1, 128;"); for (int i = 0; i < K; ++i) f(i);',
     'for (int i = 0; i < K; ++i) f(i); asm volatile("bar.arrive 1, 128;");', "comes too early"),
    ("factor missing, beside its like", "sums[0] = mark[0] * scale, sums[1] = mark[1];",
     "sums[0] = mark[0] * scale, sums[1] = scale * (mark[1]);", "scale"),
    ("step that its condition asks for",
     "for (int step = 0; step < K; ++step) { const bool more = step + 1 < K; if (more) load(memory, step * BM, 0); }",
     "for (int step = 0; step < K; ++step) { const bool more = step + 1 < K; if (more) load(memory, (step + 1) * BM, 0); }",
     "step"),
    ("step by the threads of a role", "for (int i = lane; i < K; i += blockDim.x) f(i);",
     "for (int i = lane; i < K; i += WARPS) f(i);", "another number of threads"),
    ("offset outside the swizzle", "f(memory, place(lane, warp) + quad * 8);",
     "f(memory, place(lane, warp + quad));", "added behind the XOR swizzle"),
    ("offset outside the swizzle", "f(memory, lane * 64 + (warp ^ (lane % 8)) * 8 + quad * 8);",
     "f(memory, lane * 64 + ((warp + quad) ^ (lane % 8)) * 8);", "added behind the XOR swizzle"),
    ("summand of its namesake", "{ const int c = lane < begin ? lane : end; f(c); } { const int c = 4 * lane; g(c); }",
     "{ const int c = lane < begin ? lane : end; f(c); } { const int c = begin + 4 * lane; g(c); }",
     "the variable of the same name has elsewhere"),
    ("operator of two conditions", "f(begin < first && end > column);", "f(begin < first || end > column);", "in place of"),
    ("work of one block alone", "if (lane < N % 4) f(a[N - lane]);",
     "if (blockIdx.x == gridDim.x - 1 && lane < N % 4) f(a[N - lane]);", "what one block alone must do"),
    ("limit of one case alone", "f(begin ? lane * 8 : min(K, end));", "f(min(begin ? lane * 8 : K, end));",
     "beyond its end"),
    ("name of a part for the grid", "const int tile = N - blockIdx.x; f(tile * BM); g(int(blockIdx.x) * BM);",
     "const int tile = N - blockIdx.x; f(tile * BM); g(int(tile) * BM);", "the number of the tile"),
    ("arrival before the work", 'if (begin) asm volatile("bar.arrive 1, 128;"); for (int i = 0; i < K; ++i) f(i);',
     'for (int i = 0; i < K; ++i) f(i); if (begin) asm volatile("bar.arrive 1, 128;");', "comes too early"),
    ("own part counted again", "for (int s = 0; s < gridDim.x; ++s) total += sums[s];",
     "for (int s = 0; s < gridDim.x; ++s) { if (s == blockIdx.x) continue; total += sums[s]; }",
     "the own part is added twice"),
    ("member of another object", "const float4 one = f(0), two = f(1); total = one.x * one.y;",
     "const float4 one = f(0), two = f(1); total = one.x * two.y;", "the wrong object"),
    ("value that is given, worked out", "total = 1.0f - top; f(mark[0]);", "total = scale; f(mark[0]);", "double precision"),
    ("begin of a range missing", "for (int p = 0; p < WARPS; ++p) f(p * BM);",
     "for (int p = 0; p < WARPS; ++p) f(begin + p * BM);", "counted from zero"),
    ("begin of a range missing", "f(a + lane);", "f(a + begin + lane);", "counted from zero"),
    ("guard too many", "for (int r = 0; r < K; ++r) { if (r == 0) total = 0; f(total); }",
     "for (int r = 0; r < K; ++r) { total = 0; f(total); }", "must be done each time"),
    ("part of a like condition missing", "if (warp == 0 && lane < K) f(lane); if (lane >= K) return; g(lane);",
     "if (warp == 0 && lane < K) f(lane); if (warp != 0 || lane >= K) return; g(lane);", "a like condition"),
    ("part of a like condition missing", "if (warp == 0 && lane < K) f(lane); if (lane < K) g(lane);",
     "if (warp == 0 && lane < K) f(lane); if (warp == 0 && lane < K) g(lane);", "a like condition"),
    ("nominal size of a part", "const int size = min(begin, K - lane); f(size); total /= begin;",
     "const int size = min(begin, K - lane); f(size); total /= size;", "the last part"),
    ("summand of elements among bytes", "f(begin + lane * 16 + warp * BM + end * 32);",
     "f(begin + lane * 16 + warp * BM * 2 + end * 32);", "counts elements"),
    ("number split otherwise", "if (warp == lane % 4) f(a[lane / 4]);", "if (warp == lane / 2) f(a[lane % 2]);",
     "by the wrong number"),
    ("step of all blocks", "for (int s = blockIdx.x; s < K; s += BM, ++begin) f(s);",
     "for (int s = blockIdx.x; s < K; s += gridDim.x, ++begin) f(s);", "not the number of blocks"),
    ("size without its padding", "const int tiles = (K + 8 - 1) / 8; f(a[lane * K + tiles]);",
     "const int tiles = (K + 8 - 1) / 8; f(a[lane * (tiles * 8) + tiles]);", "has whole tiles"),
    ("begin of another round", "f(begin + 1 < K ? begin + 1 : end);", "f(begin + 1 < K ? begin + 1 : 0);", "wrap around"),
    ("begin of another round", "f(begin + 1 == K ? lane : begin + 1);", "f(begin + 1 == K ? 0 : begin + 1);",
     "wrap around"),
    ("quotient by another number for a remainder", "f(a[lane % 4]);", "f(a[lane / 2]);", "/ for %"),
    ("mask of other lanes in asm", 'asm("mov.u32 %0, %%lanemask_lt;" : "=r"(begin));',
     'asm("mov.u32 %0, %%lanemask_le;" : "=r"(begin));', "the own lane"),
    ("reset missing, of a sibling", "float low = 1.0f, high = 2.0f; low = 0.0f; f(low + high);",
     "float low = 1.0f, high = 2.0f; low = 0.0f; high = 0.0f; f(low + high);", "not set back"),
    ("place within its tile in a condition", "if (begin + lane < K && lane <= warp) f(0);",
     "if (begin + lane < K && begin + lane <= warp) f(0);", "without the tile's begin"),
    ("begin of a halving loop", "for (int step = BM; step > 0; step /= 2) f(step);",
     "for (int step = BM / 2; step > 0; step /= 2) f(step);", "one step too wide"),
    ("begin of a halving loop", "for (int step = BM / 2; step > 0; step >>= 1) f(step);",
     "for (int step = BM; step > 0; step >>= 1) f(step);", "one step too wide"),
    ("layout and leading dimension of another", "load_matrix_sync(f, sums, 32, mem_col_major);",
     "load_matrix_sync(f, sums, 8, mem_row_major);", "the other layout"),
    ("value before its update", "float* p = sums; const float y = *p * scale; total = sqrtf(*p);",
     "float* p = sums; const float y = *p * scale; total = sqrtf(y);", "the old value"),
    ("statement of a like block missing",
     "{ const float y = fmaxf(top, 1.0f); top = y; } { const float y = fmaxf(top, 2.0f); f(y); }",
     "{ const float y = fmaxf(top, 1.0f); top = y; } { const float y = fmaxf(top, 2.0f); f(y); top = y; }",
     "not written back"),
    ("constant of the same type", "f(Sizes::rows); if (lane < Sizes::columns / 8) f(lane);",
     "f(Sizes::rows); if (lane < Sizes::rows) f(lane);", "another constant"),
    ("summand of a like call", "add(sums[lane] - top); add(sums[warp]);", "add(sums[lane] - top); add(sums[warp] - top);",
     "another call of the function has"),
    ("lanes of another group joined",
     "for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);",
     "for (int step = 16; step >= WARPS; step /= 2) total += __shfl_xor_sync(~0u, total, step);", "the wrong lanes"),
]  # fmt: skip
# kind of change, the right text, the wrong one, what is said
OF_THE_REST = [
    ("constant of another size", "B_PITCH = BN + 8", "B_PITCH = BM + 8", "made of the wrong size"),
    ("numbers of two constants exchanged", "WM = BM / 2, WN = BN / 4", "WM = BM / 4, WN = BN / 2", "are exchanged"),
    ("term of a like function", "return row * B_PITCH + column % 8", "return row * B_PITCH", "the same parameters"),
    ("size of the plan not rounded up", "COLUMNS: round_up(N, 64)", "COLUMNS: N", "not rounded up"),
    ("stages of shared memory", "3 * 4096", "2 * 4096", "another number of stages"),
    ("share of a block in the plan", "ceil_div(M, 8 * WARPS)", "ceil_div(M, 16 * WARPS)", "than the kernel takes"),
]  # fmt: skip
# kind of change, statements in which nothing says that there is such a mistake
RIGHT = [
    ("factor of a digit missing", "f(begin * WARPS + warp, begin + 1, BM + lane);"),
    ("next in a product", "f(begin * warp, 2 * total, 2 * (begin + 1));"),
    ("one thread where several are meant", "if (total == 0) f(lane); if (begin == 1) f(lane);"),
    ("sum in a type too narrow", "int last = 0; last = begin; f(last);"),
    ("atomic operation of the other sign", "atomicMax((unsigned*)table, begin); atomicAdd(counter, 1);"),
    ("division that rounds towards zero", "f(begin / 3, total / 2, begin / end);"),
    ("pitch of another array", "f(right[lane * B_PITCH + warp], a[lane * K]);"),
    ("tile read as it was written", "square[warp][lane] = total; f(square[lane][warp]);"),
    ("row of a tile missing", "for (int d = 0; d < BM; ++d) f(right[d * B_PITCH + lane]);"),
    ("pair of a lane's columns", 'f("m16n8k16", column + quad * 2, lane % 4 * 2, (lane & 3) << 1);'),
    ("row of the step of a loop", 'for (int k = 0; k < BM; k += 16) f("ldmatrix", right[(k + lane % 16) * B_PITCH]);'),
    ("step that its condition asks for", "if (begin + BN < K) fetch(begin + BN);"),
    ("new maximum not kept", "const float high = f(top), w = exp2f(top - high); top = high; g(w);"),
    ("what is stored and read nowhere", "totals[lane] = total; f(totals[warp]);"),
    ("element that nothing has", "f(sum[0], sum[1], sum[2], sum[3]);"),
    ("begin of each round missing, of a declaration",
     "float own = 0.0f; for (int r = 0; r < K; ++r) { own += a[r]; f(own); } f(own);"),
    ("begin of each round missing, of a declaration",
     "const float own = total; for (int r = 0; r < K; ++r) { f(own); }"),
    ("second of a pair unchecked", "sums[0] = total; sums[1] = top;"),
    ("own part counted again", "for (int i = 0; i < K; ++i) total += sums[i];"),
    ("sum begun with a part", "float all = sums[lane]; f(all);"),
    ("statement before its guard", "for (int i = lane; i < K; i += 32) { if (i >= N) continue; f(begin); }"),
    ("matrices of a load exchanged", 'f("ldmatrix", lane / 16, lane % 8);'),
    ("half of a fragment", "f(sum[quad % 2]);"),
    ("index of the array beside it", "f(sums[begin + 1], right[begin + 1], lane);"),
    ("step of all lanes", "for (int at = lane; at < N; at += 32) f(at);"),
    ("registers of a fragment exchanged", 'const int a[3] = {f(lane), f(N), f(M)}; f("mma", a);'),
    ("other stage of a buffer", "f(STAGES - 1);"),
    ("step by those that share a loop", "for (int s = warp; s < K; s += WARPS) f(s);"),
    ("unit not multiplied again", "total = float(__nv_fp8_e4m3(total / scale)) * scale;"),
    ("counter of the last block kept",
     "if (atomicAdd(&counter[warp], 1u) < N) return; if (threadIdx.x == 0) counter[warp] = 0;"),
    ("reduction in each round as well", "total = total * top + lane_sum(scale); f(total);"),
    ("value before its update", "const float copied = total; f(total);"),
    ("elements for bytes", "f(begin < end ? begin : 0); const int rows = end;"),
    ("sum of the first lane alone", "for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);"),
    ("step of a loop beyond its end", "for (; begin < end; ++begin) f(begin);"),
    ("scale of another length", "total *= 0.3f;"),
    ("vectors counted for elements", "begin += 2;"),
    ("neighbour for the next of a step", "for (int r = first; r < M; ++r) f(r + 1);"),
    ("sign of bits that are joined", "const unsigned short* bits = reinterpret_cast<const unsigned short*>(a);"),
    ("offset outside the swizzle", "f(memory, a_at(lane, warp) + quad * 8);"),
    ("summand of its namesake", "{ const int c = lane; f(c); } { const int d = 4 * lane; g(d); }"),
    ("work of one block alone", "if (blockIdx.x == 0) f(lane);"),
    ("limit of one case alone", "f(begin ? lane : end);"),
    ("name of a part for the grid", "f(begin * BN, blockIdx.x * BM);"),
    ("own part counted again", "for (int s = 0; s < WARPS; ++s) f(s, 0);"),
    ("member of another object", "const float4 one = f(0); total = one.x * one.y;"),
    ("guard too many", "if (lane < 4) f(total);"),
    ("part of a like condition missing", "if (warp == 0 && lane < K) f(lane); if (lane < M) g(lane);"),
    ("nominal size of a part", "const int size = min(begin, K - lane); f(size * begin);"),
    ("summand of elements among bytes", "f(begin + warp * BM + end);"),
    ("number split otherwise", "if (warp == lane % 4) f(a[begin / 4]);"),
    ("step of all blocks", "for (int s = blockIdx.x; s < K; s += gridDim.x) f(s);"),
    ("size without its padding", "const int tiles = K / 8; f(a[lane * K + tiles]);"),
    ("begin of another round", "f(begin + 1 < K ? begin + 2 : end);"),
    ("mask of other lanes in asm", 'asm("mov.u32 %0, %%laneid;" : "=r"(begin));'),
    ("reset missing, of a sibling", "float low = 1.0f, high = 2.0f; low = 0.0f; high = 1.0f;"),
    ("layout and leading dimension of another", "load_matrix_sync(f, sums, 32);"),
    ("statement of a like block missing", "{ const float y = fmaxf(top, 1.0f); f(y); } { const float y = top; f(y); }"),
    ("constant of the same type", "f(Sizes::rows); if (lane < Others::columns) f(lane);"),
    ("place within its tile in a condition", "f(begin + lane < K && warp <= end);"),
    ("limit by a function of the kernel missing", "f(lane * 4);"),
    ("summand of a like call", "h(sums[lane] - top); add(sums[warp]);"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wrong", "right", "said"), MISTAKES)
def test_a_change_of_its_kind_mends_the_mistake(
    kind: str, wrong: str, right: str, said: str
) -> None:
    assert_said(kernel(wrong), repairing(kernel(wrong), kernel(right), kind), said)


@pytest.mark.parametrize(("kind", "right", "wrong", "said"), OF_THE_REST)
def test_a_change_of_constants_functions_and_the_plan_mends_it(
    kind: str, right: str, wrong: str, said: str
) -> None:
    body = "f((blockIdx.y * WARPS + warp) * 8);"
    candidate = kernel(body, right, wrong)
    assert_said(candidate, repairing(candidate, kernel(body), kind), said)


def test_a_limit_by_a_function_of_the_kernel_mends_the_mistake() -> None:
    head = "__device__ float lane_sum(float x) {"
    own = "__device__ int larger(int a, int b) { return a < b ? b : a; }\n"
    wrong = kernel("end = warp * BM; f(end);", head, own + head)
    right = kernel("end = larger(begin, warp * BM); f(end);", head, own + head)
    found = repairing(wrong, right, "limit by a function of the kernel missing")
    assert_said(wrong, found, "a limit is missing")


def test_a_function_that_waits_for_copies_is_known_by_what_it_does() -> None:
    begin = "__device__ float lane_sum"
    waits = 'template <int N> __device__ void left() { asm("cp.async.wait_group %0;" ::"n"(N)); }'
    wrong, right = (
        kernel(body, begin, f"{waits}\n{begin}")
        for body in ("left<STAGES>();", "left<STAGES - 1>();")
    )
    assert repairing(wrong, right, "groups of copies by one")


def test_a_function_of_one_copy_makes_no_group_of_its_own() -> None:
    begin, copy = (
        "__device__ float lane_sum",
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;");',
    )
    functions = f"__device__ void one() {{ {copy} }}\n__device__ void all() {{ for (int i = 0; i < 4; ++i) one(); {copy} }}"
    body = f'one(); {copy} asm volatile("cp.async.commit_group;");'
    wrong = kernel(body, begin, f"{functions}\n{begin}")
    starts = [it.start for it, _ in ordered_changes(wrong) if it.kind == "commit missing"]
    assert not [start for start in starts if start < wrong.source.index(begin)]


def test_a_share_that_is_no_whole_number_of_tiles_is_rounded_up() -> None:
    size = "COLUMNS: round_up(N, 64)"
    right = kernel(right=size, wrong="COLUMNS: round_up(ceil_div(N, 3), 64)")
    wrong = kernel(right=size, wrong="COLUMNS: ceil_div(N, 3)")
    changes = repairing(wrong, right, "size of the plan not rounded up")
    assert_said(wrong, changes, "not rounded up to whole tiles")
    wrong = kernel(right=size, wrong="COLUMNS: N // 3 // 64 * 64")
    changes = repairing(wrong, right, "share of the plan in whole tiles rounded down")
    assert_said(wrong, changes, "the parts do not reach the end")


@pytest.mark.parametrize(
    ("place", "right", "wrong", "kind", "said"),
    [
        (
            "COLUMNS: round_up(N, 64)",
            "COLUMNS: N + K",
            "COLUMNS: N",
            "size of the plan without a part",
            "counts one part only",
        ),
        (
            "shared: 3 * 4096",
            "shared: COLUMNS + 64",
            "shared: COLUMNS",
            "shared memory without a part",
            "too few bytes of shared memory",
        ),
    ],
)
def test_a_size_of_the_plan_that_lacks_a_part_has_it_again(
    place: str, right: str, wrong: str, kind: str, said: str
) -> None:
    lacking = kernel(right=place, wrong=wrong)
    assert_said(lacking, repairing(lacking, kernel(right=place, wrong=right), kind), said)


@pytest.mark.parametrize(
    "alias", ["typedef unsigned int u32;", "using u32 = unsigned int;", "typedef int u32;"]
)
def test_names_of_own_types_for_whole_numbers_are_known(alias: str) -> None:
    begin = "__device__ float lane_sum"
    wrong, right = (
        kernel(f"u32 row = {value} + 1; f(row);", begin, f"{alias}\n{begin}")
        for value in ("begin", "end")
    )
    assert repairing(wrong, right, "name of the same declaration, int")
    wrong, right = (
        kernel(f"u32 row = 1, column = 2; f({value});", begin, f"{alias}\n{begin}")
        for value in ("row", "column")
    )
    assert repairing(wrong, right, "name of the same declaration, int")


def test_what_is_declared_with_its_values_in_brackets_is_known() -> None:
    begin = "__device__ float lane_sum"
    own = "struct Step { int tile, slice; __device__ Step(int, int); };"
    wrong, right = (
        kernel(
            f"const Step now(begin, 4), next(begin + 1, 4); f({value}.tile);",
            begin,
            f"{own}\n{begin}",
        )
        for value in ("now", "next")
    )
    assert repairing(wrong, right, "member of another object")


def test_a_call_with_template_arguments_is_no_sum_in_brackets() -> None:
    changes = [change for change, _ in ordered_changes(kernel("load<BM>(sums, begin + 1, end);"))]
    assert not [change for change in changes if change.new.startswith("(sums, begin")]


@pytest.mark.parametrize(("kind", "body"), RIGHT)
def test_a_kernel_without_such_a_place_has_no_change_of_the_kind(kind: str, body: str) -> None:
    assert kind not in {change.kind for change, _ in ordered_changes(kernel(body))}


@pytest.mark.parametrize(
    "head",
    ["void add(float x) {", "void add(float x) const {", "auto add(float x) const -> void {"],
)
def test_the_bodies_of_functions_of_a_struct_are_known(head: str) -> None:
    begin = "__device__ float lane_sum"
    wrong, right = (
        kernel("f(0);", begin, f"struct Sum {{ float* a; __device__ {head} {body} }} }};\n{begin}")
        for body in ("a[1] = a[0] * x; a[0] = x + a[0];", "a[0] = x + a[0]; a[1] = a[0] * x;")
    )
    assert repairing(wrong, right, "statements in the wrong order")


def test_parameters_of_own_types_are_known() -> None:
    begin = "__device__ float lane_sum"
    wrong, right = (
        kernel(
            "f(0);",
            begin,
            "struct Part { float count, mean; };\n"
            "__device__ float share(const Part& one, const Part* other) "
            f"{{ return {value} / (one.count + other->count); }}\n{begin}",
        )
        for value in ("one.count", "other.count")
    )
    assert repairing(wrong, right, "member of another object") == []  # a pointer is no object
    wrong, right = (
        kernel(
            "f(0);",
            begin,
            "struct Part { float count, mean; };\n"
            "__device__ float share(const Part& one, Part& other) "
            f"{{ return {value}.count / (one.count + other.count); }}\n{begin}",
        )
        for value in ("one", "other")
    )
    assert repairing(wrong, right, "member of another object")
