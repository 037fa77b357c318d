"""Mistakes of parts of expressions: lanes, extents, first values, choices, ends of parts."""

from __future__ import annotations

import pytest

from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.expression_weights import EXPRESSION_WEIGHTS
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding
from evoengine.evaluate.repair.words.expression_meanings import EXPRESSION_MEANINGS
from tests.evaluate.repair.parts_kernel import kernel, repairing

# kind of change, the wrong statements, the right ones
MISTAKES = [
    ("lanes of a matrix", 'load(lane / 8 % 2); asm("ldmatrix");', 'load(lane / 16); asm("ldmatrix");'),
    ("lanes of a matrix", 'load(lane % 8); asm("ldmatrix");', 'load(lane % 16); asm("ldmatrix");'),
    ("first lane of a group", "mean = __shfl_sync(~0u, mean, lane + C);",
     "mean = __shfl_sync(~0u, mean, (lane & ~1) + C);"),
    ("one lane for all missing", "if (row) atomicAdd(out, mean);",
     "if (threadIdx.x % 32 == 0 && row) atomicAdd(out, mean);"),
    ("one lane for all missing", "if (lane == 0) f(row); if (row < N) atomicAdd(out, mean);",
     "if (lane == 0) f(row); if (lane == 0 && row < N) atomicAdd(out, mean);"),
    ("segment of another lane",
     "const int of = __shfl_up_sync(~0u, base, 1); if (lane >= row) mean += 1;",
     "const int of = __shfl_up_sync(~0u, base, 1); if (lane >= row && of == base) mean += 1;"),
    ("lane without a neighbour",
     "const int next = __shfl_down_sync(~0u, base, 1); if (next != base) f(row);",
     "const int next = __shfl_down_sync(~0u, base, 1); if (lane == 31 || next != base) f(row);"),
    ("lane for a thread", "if (threadIdx.x == 0) f(row);", "if (threadIdx.x % 32 == 0) f(row);"),
    ("barrier of another group", 'asm volatile("bar.sync %0, 128;" :: "r"(1) : "memory");',
     'asm volatile("bar.sync %0, 128;" :: "r"(row + 1) : "memory");'),
    ("first values exchanged",
     "const int low = base >> 16, high = base & 65535; f(low, high);",
     "const int low = base & 65535, high = base >> 16; f(low, high);"),
    ("begin of the next part",
     "const int first = C * lane / 8, last = first + C / 8; f(first, last);",
     "const int first = C * lane / 8, last = C * (lane + 1) / 8; f(first, last);"),
    ("edge of both coordinates missing",
     "const int y = row * 16 + lane / 18, z = base + lane % 18; f(y, z);",
     "const int y = row * 16 + lane / 18 - 1, z = base + lane % 18 - 1; f(y, z);"),
    ("first value that is read",
     "float before = 0.0f, here = value(lane, row); f(before, here);",
     "float before = value(lane - 1, row), here = value(lane, row); f(before, here);"),
    ("sum that begins with the lowest",
     "float sum = -INFINITY; sum += x[row];", "float sum = 0.0f; sum += x[row];"),
    ("largest that begins with zero",
     "int most = 0; most = max(most, table[row]);",
     "int most = -2147483647 - 1; most = max(most, table[row]);"),
    ("own number of a scan",
     "int all = lane; all += __shfl_up_sync(~0u, all, 1); out[row] = all;",
     "int all = lane; all += __shfl_up_sync(~0u, all, 1); out[row] = all - lane;"),
    ("sign of bits that are moved", "int h = table[row]; h ^= h >> 16;",
     "unsigned h = table[row]; h ^= h >> 16;"),
    ("whole numbers without a sign", "const unsigned from = row - lane; f(from);",
     "const int from = row - lane; f(from);"),
    ("numbers taken as unsigned", "kept[0] = __dp4a(unsigned(row), unsigned(lane), unsigned(base));",
     "kept[0] = __dp4a(row, lane, base);"),
    ("numbers taken as unsigned",
     "kept[0] = int(__dp4a(unsigned(row), unsigned(lane), unsigned(base)));",
     "kept[0] = __dp4a(row, lane, base);"),
    ("stride of the loop's length", "for (int i = 0; i < C / 3; ++i) f(row * 3 + i);",
     "for (int i = 0; i < C / 3; ++i) f(row * (C / 3) + i);"),
    ("index transposed, of an extent", "out[blockIdx.x * 16 + threadIdx.x] = mean;",
     "out[threadIdx.x * gridDim.x + blockIdx.x] = mean;"),
    ("index transposed, of an extent", "for (int s = 0; s < N; ++s) f(x[s * C + lane]);",
     "for (int s = 0; s < N; ++s) f(x[lane * N + s]);"),
    ("planes for turns", "f((row % C + lane * C) * 8);", "f((row % C * 2 + lane) * 8);"),
    ("numbers counted as vectors", "const long long vectors = N / 4; f(vectors + lane);",
     "const long long vectors = N / 4; f(vectors * 4 + lane);"),
    ("divisor of a term missing", "f(x[base + lane]);", "f(x[base + lane / 2]);"),
    ("row of vectors", "f(float4()); f(row * 8 + lane / N);", "f(float4()); f(row * 8 + lane / (N / 4));"),
    ("remainder before a quotient missing", "const int i = row % base, j = row / C; f(i, j);",
     "const int i = row % base, j = row % base / C; f(i, j);"),
    ("number of two axes of the grid", "f(x + blockIdx.z * 9);", "f(x + blockIdx.z % C * 9);"),
    ("batch of a pointer missing",
     "f(x + size_t(blockIdx.z) * N * C + lane); f(out + row * 4);",
     "f(x + size_t(blockIdx.z) * N * C + lane); f(out + size_t(blockIdx.z) * C * N + row * 4);"),
    ("elements of each part missing", "const int at = row % 4; f(at);", "const int at = row % 4 * 8; f(at);"),
    ("step along the other axis", "f(grid[lane][row + 1]);", "f(grid[lane + 1][row]);"),
    ("index mirrored", "f(x[(1 - lane) * 3 + 1 - row]);", "f(x[(lane + 1) * 3 + row + 1]);"),
    ("index behind the last", "f(x[N - blockIdx.x]);", "f(x[N - 1 - blockIdx.x]);"),
    ("index behind the last", "for (int i = 0; i < C; ++i) f(x[C - i]);",
     "for (int i = 0; i < C; ++i) f(x[C - 1 - i]);"),
    ("begin of the second part", "if (row < 64) f(row * C); else f(row * N);",
     "if (row < 64) f(row * C); else f((row - 64) * N);"),
    ("choices exchanged", "f(row < N ? 16 : 0);", "f(row < N ? 0 : 16);"),
    ("flag of a condition missing", "const bool inside = row < N; if (lane > C) f(inside);",
     "const bool inside = row < N; if (inside && lane > C) f(inside);"),
    ("bytes of what lies outside",
     'const bool inside = row < N; asm("cp.async.cg" :: "r"(base), "r"(16)); f(inside);',
     'const bool inside = row < N; asm("cp.async.cg" :: "r"(base), "r"(inside ? 16 : 0)); f(inside);'),
    ("comparisons of both ends", "if (row > N && row - lane <= N) f(row);",
     "if (row >= N && row - lane < N) f(row);"),
    ("weight of a part missing", "mean += parts[row].y + mean * mean;",
     "mean += parts[row].y + parts[row].x * mean * mean;"),
    ("weight of a part missing", "mean = expf(parts[row].x - mean);",
     "mean = expf(parts[row].x - mean) * parts[row].y;"),
    ("count of the last block", "const bool last = atomicAdd(count, 1) == gridDim.x; f(last);",
     "const bool last = atomicAdd(count, 1) == gridDim.x - 1; f(last);"),
    ("registers in another order", "f(kept[0], kept[2]); f(kept[1], kept[3]);",
     "f(kept[0], kept[1]); f(kept[2], kept[3]);"),
    ("operands of an instruction exchanged",
     'asm("mma" :: "r"(table[0]), "r"(table[lane]), "r"(table[row]));',
     'asm("mma" :: "r"(table[0]), "r"(table[row]), "r"(table[lane]));'),
    ("indices of an array exchanged",
     "f(1, grid[lane][0]); f(2, grid[lane][1]);", "f(1, grid[0][lane]); f(2, grid[1][lane]);"),
    ("name for another, in statements alike",
     "f(1, lane % 4, row * 8); f(2, lane % 4, row * 8);",
     "f(1, row % 4, row * 8); f(2, row % 4, row * 8);"),
    ("byte of a code not cut",
     "const unsigned low = __float2int_rn(mean), high = __float2int_rn(mean); f(low | high << 8);",
     "const unsigned low = __float2int_rn(mean) & 255, high = __float2int_rn(mean) & 255; f(low | high << 8);"),
    ("end of a block's own part", "const int end = N; for (int k = blockIdx.z * 512; k < end; ++k) f(k);",
     "const int end = min(int(blockIdx.z + 1) * 512, N); for (int k = blockIdx.z * 512; k < end; ++k) f(k);"),
    ("plane of the block missing", "out[size_t(row) * N + lane] = mean; f(blockIdx.z);",
     "out[(size_t(blockIdx.z) * C + row) * N + lane] = mean; f(blockIdx.z);"),
    ("leading dimension of its array", "wmma::load_matrix_sync(mean, &grid[lane][row], 40);",
     "wmma::load_matrix_sync(mean, &grid[lane][row], 72);"),
    ("rows without their padding", "constexpr int P = 32, PA = P + 8; f(PA); f(N * P + lane * P);",
     "constexpr int P = 32, PA = P + 8; f(PA); f(N * PA + lane * PA);"),
    ("part of an array cleared", "for (int i = lane; i < C; i += 32) tile[i] = 0;",
     "for (int i = lane; i < 8 * C; i += 32) tile[i] = 0;"),
    ("groups of copies by one", "copies_wait<2 * N>();", "copies_wait<2 * N - 1>();"),
    ("one for a size in a limit", "f(min(N, row + C));", "f(min(N, row + 1));"),
    ("call missing, magnitudes", "mean = fmaxf(mean, fmaxf(x[0], x[1]));",
     "mean = fmaxf(mean, fmaxf(fabsf(x[0]), fabsf(x[1])));"),
    ("coordinates exchanged", "if (lane / 2 + C > row + lane % 2 * 8) f(row);",
     "if (lane % 2 + C > row + lane / 2 * 8) f(row);"),
    ("name not changed in a copy", "f(tile_k, size_k); f(tile_v, size_k);", "f(tile_k, size_k); f(tile_v, size_v);"),
    ("end without its limit", "const int end = base + 64; f(end);", "const int end = min(base + 64, N); f(end);"),
    ("end without its limit", "const int z1 = row + 1; f(z1);", "const int z1 = min(row + 1, N - 1); f(z1);"),
    ("offset that others add",
     "const int left = N - base; f(x[left + lane * (N / 2)]); f(x[base + lane * (N / 2)]);",
     "const int left = N - base - lane * (N / 2); f(x[left + lane * (N / 2)]); f(x[base + lane * (N / 2)]);"),
    ("begin of another stage",
     "int from = base, to = base; if (to == base + N * C) f(from);",
     "int from = base, to = base + (N - 1) * C; if (to == base + N * C) f(from);"),
    ("bits that no mask keeps", "f(row & 15); f(row >> 4);", "f(row & 15); f(row >> 4 & 15);"),
    ("largest that begins with zero", "float top = 0.0f; top = fmaxf(top, x[row]);",
     "float top = __int_as_float(0xff800000); top = fmaxf(top, x[row]);"),
    ("begin of the second part", "f(lane < 4 ? x + row * C : out + row * N); f(64);",
     "f(lane < 4 ? x + row * C : out + (row - 64) * N); f(64);"),
    ("pointer without its row", "const float* own = x + row * C; f(own[0], x[lane]);",
     "const float* own = x + row * C; f(own[0], own[lane]);"),
    ("sigmoid of another number", "const float b = x[row]; out[row] = b / (1.0f + __expf(-mean));",
     "const float b = x[row]; out[row] = b / (1.0f + __expf(-b));"),
    ("bits of the lanes before", "f(__popc(row & ((2u << lane) - 1)));",
     "f(__popc(row & ((1u << lane) - 1)));"),
    ("quotient of a size", "const int head = row / C, token = head % N; f(token);",
     "const int head = row / C, token = head / N; f(token);"),
    ("length of its own for a size",
     "const int length = table[row]; for (int t = 0; t < N; ++t) mean += x[t]; f(length);",
     "const int length = table[row]; for (int t = 0; t < length; ++t) mean += x[t]; f(length);"),
    ("length of its own for a size", "const int states = 2 * N + 1; f(states, table[row]);",
     "const int states = 2 * table[row] + 1; f(states, table[row]);"),
    ("element that two variables read",
     "const float across = x[row], down = x[row]; f(across, down);",
     "const float across = x[row], down = x[N + row]; f(across, down);"),
    ("count without its limit",
     "const int count = N - base; for (int i = 0; i < count; ++i) f(i);",
     "const int count = min(32, N - base); for (int i = 0; i < count; ++i) f(i);"),
    ("registers in another order",
     "const int w[4] = {f(row), f(lane), f(base), f(N)}; f(w[0]);",
     "const int w[4] = {f(row), f(base), f(lane), f(N)}; f(w[0]);"),
    ("index transposed, of an extent", "if (lane >= N) return; f(x[(size_t)lane * 4 + i]);",
     "if (lane >= N) return; f(x[(size_t)i * N + lane]);"),
    ("index transposed, of an extent", "for (int s = 0; s < N; ++s) f(x[size_t(s) * C + lane]);",
     "for (int s = 0; s < N; ++s) f(x[size_t(lane) * N + s]);"),
    ("sum of an index as elsewhere",
     "for (int i = 0; i < C; i += 2) out[row * C + i * 16 + lane * 2] = x[row * C + lane * N + i];",
     "for (int i = 0; i < C; i += 2) out[row * C + i * 16 + lane * 2] = x[row * C + i * 16 + lane * 2];"),
    ("sum of an index as elsewhere", "f(row * 4 + lane, x[row + lane]);", "f(row * 4 + lane, x[row * 4 + lane]);"),
    ("sum of an index as elsewhere", "const int at = row * 4 + lane; f(at); const int to = row + lane; f(to);",
     "const int at = row * 4 + lane; f(at); const int to = row * 4 + lane; f(to);"),
]  # fmt: skip
# kind of change, and statements that do not have it
RIGHT = [
    ("lanes of a matrix", "f(lane % 8, lane / 16);"),
    ("first lane of a group", "mean = __shfl_xor_sync(~0u, mean, lane);"),
    ("one lane for all missing", "if (row < N) out[row] = mean;"),
    ("segment of another lane", "if (lane >= row) mean += 1;"),
    ("lane without a neighbour", "if (base != row) f(row);"),
    ("lane for a thread", "if (threadIdx.x % 32 == 0) f(row);"),
    ("barrier of another group", 'asm volatile("mov %0, %1;" :: "r"(1));'),
    ("first values exchanged", "const int low = base >> 16, high = row & 65535;"),
    ("begin of the next part", "const int first = C + lane, last = first + C;"),
    ("first value that is read", "float before = 0.0f; int here = lane;"),
    ("sum that begins with the lowest", "float top = -INFINITY; top = fmaxf(top, x[row]);"),
    ("own number of a scan", "int all = lane; all += row; out[row] = all;"),
    ("sign of bits that are moved", "int h = table[row]; h = h / 2;"),
    ("numbers taken as unsigned", "f(unsigned(row) + lane);"),
    ("numbers counted as vectors", "const int half = N / 2; if (lane < half) f(row);"),
    ("row of vectors", "f(row / N);"),
    ("batch of a pointer missing", "f(x + row * 4);"),
    ("step along the other axis", "f(tile[row + 1]);"),
    ("begin of the second part", "if (row < 0) f(row);"),
    ("flag of a condition missing", "if (lane > C) f(row);"),
    ("bytes of what lies outside", "const bool inside = row < N; f(16, inside);"),
    ("comparisons of both ends", "if (row > N) f(row);"),
    ("count of the last block", "if (row == gridDim.x) f(row);"),
    ("registers in another order", "f(kept[0], kept[1]);"),
    ("byte of a code not cut", "row = __float2int_rn(mean);"),
    ("plane of the block missing", "out[row * N + lane] = mean;"),
    ("rows without their padding", "f(N * C);"),
    ("part of an array cleared", "for (int i = lane; i < C; i += 32) tile[i] = mean;"),
    ("groups of copies by one", "copies_commit<2>();"),
    ("name not changed in a copy", "f(tile_k, size_k); f(tile_k, size_k);"),
    ("end without its limit", "const int middle = base + 64; f(middle);"),
    ("offset that others add", "const int left = N - base; f(x[base + lane * (N / 2)]);"),
    ("begin of another stage", "int from = base, to = base; f(from, to);"),
    ("bits that no mask keeps", "f(row >> 4);"),
    ("pointer without its row", "const float* own = x; f(own[0], x[lane]);"),
    ("sigmoid of another number", "mean = mean / (1.0f + __expf(-mean));"),
    ("bits of the lanes before", "f(4 << lane);"),
    ("quotient of a size", "f(mean / 2);"),
    ("largest that begins with zero", "float top = 0.0f; top += x[row];"),
    ("sum of an index as elsewhere", "f(row * 4 + lane, x[row * 4 + lane]);"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wrong", "right"), MISTAKES)
def test_a_change_of_its_kind_mends_the_mistake(kind: str, wrong: str, right: str) -> None:
    assert kind in {change.kind for change in repairing(kernel(wrong), kernel(right))}


@pytest.mark.parametrize(("kind", "body"), RIGHT)
def test_a_kernel_without_such_a_place_has_no_change_of_the_kind(kind: str, body: str) -> None:
    assert kind not in {change.kind for change, _ in ordered_changes(kernel(body))}


@pytest.mark.parametrize(
    ("number", "said"),
    [(2, "the lowest bits of the lane are not cleared"),
     (5, "the other lane belongs to the same segment"),
     (12, "the first value is taken as zero"),
     (21, "rows and columns (blocks and threads) are transposed"),
     (25, "a division is missing")],
)  # fmt: skip
def test_the_sentence_says_what_it_means(number: int, said: str) -> None:
    kind, wrong, right = MISTAKES[number]
    changes = [it for it in repairing(kernel(wrong), kernel(right)) if it.kind == kind]
    found = finding(kernel(wrong), FoundRepairs(changes=changes[:1]))
    assert found is not None and said in found.sentence, found


@pytest.mark.unsampled
def test_every_kind_has_words_of_its_own() -> None:
    words = [kind for kind, _ in EXPRESSION_MEANINGS]
    assert sorted(words) == sorted(EXPRESSION_WEIGHTS)
    beginnings = [
        (one, other)
        for one in words
        for other in words
        if one != other and other.startswith(one) and words.index(one) < words.index(other)
    ]
    assert not beginnings
