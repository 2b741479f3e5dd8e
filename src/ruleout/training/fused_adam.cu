// The gradient of a first layer and its update by Adam in one pass, for Hopper GPUs.
//
// Written and read again, the gradient would cost a quarter of all bytes that a step moves. Here a
// block multiplies one tile of it, slopes A [T, M, K] by examples X [T, PARTS, N, K], and moves the
// weights P [T, M, N] and their moments by it. Three blocks share a multiprocessor: while one
// multiplies, the others wait for memory.
//
// Given from outside: ROWS (64) and COLUMNS of a tile, THREADS (128, which wgmma needs), BATCH (32:
// what a stage holds of the batch, 128 bytes of a row), STAGES (2: more would leave too little of the
// cache for weights on their way), EXACT, ADAMW, the betas, and the text of wgmma.

#define PARTS (1 + EXACT)
#define STAGE ((ROWS + PARTS * COLUMNS) * BATCH)
#define AHEAD 5  // loads of four weights in flight

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// Where 16 bytes of a row lie: as wgmma reads them without two threads waiting for one bank.
__device__ __forceinline__ int swizzled(int row, int unit) {
    return row * BATCH + 4 * (unit ^ (row & 7));
}

// Fetch a tile; what is not there becomes 0. Columns are dealt so that a thread ends with four
// neighbours of a row in its registers: it then reads and writes weights 16 bytes at a time.
template <int COUNT, bool DEALT>
__device__ __forceinline__ void fetch(float* tile, const float* from, int rows, int k0, int K) {
#pragma unroll
    for (int i = 0; i < COUNT * 8 / THREADS; i++) {
        const int row = (threadIdx.x + i * THREADS) / 8, unit = threadIdx.x % 8, k = k0 + 4 * unit;
        const int to = DEALT ? row / 16 * 16 + row % 16 / 4 * 2 + row % 2 + row % 4 / 2 * 8 : row;
        const bool there = row < rows && k < K;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         address(tile + swizzled(to, unit))),
                     "l"(there ? from + (long long)row * K + k : from), "r"(there ? 16 : 0));
    }
}

// What tells wgmma where a tile is: rows of 128 bytes, swizzled, in groups of eight.
__device__ __forceinline__ u64 descriptor(const float* tile) {
    return (u64)((address(tile) & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void finish() {
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#if EXACT

__device__ __forceinline__ void multiply(float (&d)[COLUMNS / 2], const u32 (&a)[4], u64 b, int add) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, " IN5 ", 0;\n" WGMMA "{" REGISTERS "}, {" IN0 ", " IN1
                 ", " IN2 ", " IN3 "}, " IN4 ", p, 1, 1;}"
                 : OUTPUTS : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}

__device__ __forceinline__ u32 tf32(float x) {
    u32 out;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
    return out;
}

// Each number is a TF32 number and a rest: three products are as exact as float32. Tensor cores cut
// their sums off where float32 rounds, so that sums over BATCH numbers are added up outside.
__device__ __forceinline__ void add_up(float (&sum)[COLUMNS / 2], const float* a, const float* x, int k) {
    float part[COLUMNS / 2];
    const int row = threadIdx.x / 32 * 16 + threadIdx.x / 4 % 8, q = threadIdx.x % 4;
    const u64 right = descriptor(x), rest = descriptor(x + COLUMNS * BATCH);
#pragma unroll
    for (int s = 0; s < 4; s += 2) {
        u32 high[2][4], low[2][4];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float value = a[swizzled(row + i % 2 * 8, 2 * s + i / 2) + q];
            high[i / 4][i % 4] = tf32(value);
            low[i / 4][i % 4] = tf32(value - __uint_as_float(high[i / 4][i % 4]));
        }
        begin();
#pragma unroll
        for (int e = 0; e < 2; e++) {
            multiply(part, low[e], right + 2 * (s + e), s + e);
            multiply(part, high[e], rest + 2 * (s + e), 1);
            multiply(part, high[e], right + 2 * (s + e), 1);
        }
        finish();
    }
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) sum[i] = k ? sum[i] + part[i] : part[i];
}

#else

__device__ __forceinline__ void multiply(float (&d)[COLUMNS / 2], u64 a, u64 b, int add) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, " IN2 ", 0;\n" WGMMA "{" REGISTERS "}, " IN0 ", " IN1
                 ", p, 1, 1;}"
                 : OUTPUTS : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void add_up(float (&sum)[COLUMNS / 2], const float* a, const float* x, int k) {
    const u64 left = descriptor(a), right = descriptor(x);
    begin();
#pragma unroll
    for (int s = 0; s < 4; s++) multiply(sum, left + 2 * s, right + 2 * s, k + s);
    finish();
}

#endif

// Ask for the whole cache line: its other half is read next.
__device__ __forceinline__ float4 four(const float* from) {
    float4 x;
    asm volatile("ld.global.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(from));
    return x;
}

struct Rates {
    float size, epsilon, decay, shrink;
};

// The same steps as `_step` in gpu_kernels.py.
__device__ __forceinline__ void adam(float& p, float& m, float& v, float g, const Rates& by) {
    if (ADAMW) p = p * by.shrink;
    else g = g + by.decay * p;
    m = m + (float)(1 - BETA1) * (g - m);
    v = (float)BETA2 * v + (float)(1 - BETA2) * g * g;
    float root, ratio;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
    asm("div.full.f32 %0, %1, %2;" : "=f"(ratio) : "f"(by.size * m), "f"(root + by.epsilon));
    p = p - ratio;
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
move(const float* A, const float* X, float* P, float* M1, float* M2, const float* SIZE,
     const float* EPSILON, const float* DECAY, const float* SHRINK, int M, int N, int K, int models,
     int stride) {
    extern __shared__ __align__(1024) float shared[];
    const int wide = (N + COLUMNS - 1) / COLUMNS;  // neighbours share slopes in the cache
    const int m0 = blockIdx.x / wide * ROWS, n0 = blockIdx.x % wide * COLUMNS, t = blockIdx.y;
    const int steps = (K + BATCH - 1) / BATCH;
    A += ((long long)t * M + m0) * K;
    X += ((long long)t * PARTS * N + n0) * K;
    auto load = [&](int k) {
        float* to = shared + k % STAGES * STAGE;
        if (k < steps) {
            fetch<ROWS, false>(to, A, M - m0, k * BATCH, K);
            for (int part = 0; part < PARTS; part++)
                fetch<COLUMNS, true>(to + (ROWS + part * COLUMNS) * BATCH,
                                     X + (long long)part * N * K, N - n0, k * BATCH, K);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[COLUMNS / 2];
    load(0);
    for (int k = 0; k < steps; k++) {
        asm volatile("cp.async.wait_group 0;\nfence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        load(k + 1);
        const float* a = shared + k % STAGES * STAGE;
        add_up(sum, a, a + ROWS * BATCH, k);
    }
    const int first = n0 + threadIdx.x % 4 * 4;
    const long long to1 = M1 - P, to2 = M2 - P;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = m0 + threadIdx.x / 32 * 16 + h * 8 + threadIdx.x / 4 % 8;
        if (row >= M) break;
        const int c = row / (M / models), own = t * stride;
        const Rates by = {SIZE[own + c], EPSILON[own], DECAY[c], SHRINK[c]};
        float* here = P + ((long long)t * M + row) * N + first;
#pragma unroll
        for (int j0 = 0; j0 < COLUMNS / 16; j0 += AHEAD) {
            float4 p[AHEAD], m[AHEAD], v[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                if (first + 16 * (j0 + j) < N) {
                    p[j] = four(here + 16 * (j0 + j));
                    m[j] = four(here + to1 + 16 * (j0 + j));
                    v[j] = four(here + to2 + 16 * (j0 + j));
                }
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                if (first + 16 * (j0 + j) < N) {
                    const int i = 8 * (j0 + j) + 2 * h;
                    adam(p[j].x, m[j].x, v[j].x, sum[i], by);
                    adam(p[j].y, m[j].y, v[j].y, sum[i + 1], by);
                    adam(p[j].z, m[j].z, v[j].z, sum[i + 4], by);
                    adam(p[j].w, m[j].w, v[j].w, sum[i + 5], by);
                    *(float4*)(here + 16 * (j0 + j)) = p[j];
                    *(float4*)(here + to1 + 16 * (j0 + j)) = m[j];
                    *(float4*)(here + to2 + 16 * (j0 + j)) = v[j];
                }
        }
    }
}
