// From the slopes of the logits down to the hidden layer, in one pass over it.
//
// For every model: X [N, B] is the hidden layer before its ReLU and becomes its own slope,
// W [K, N] the weights of the last layer and S [K, B] the slopes of its logits. A warp owns 16 rows
// of X: their slopes are a small product, and so are their columns of the gradient WEIGHT [K, N].
// Both are laid so that a thread needs the same four neighbours of a row, which it reads once.
//
// Given from outside: EXACT.

#define CLASSES 16  // K is filled up with 0
#define BATCH 256   // what is shared of S at a time
#define PITCH 272   // of its rows: neighbours start in different banks
#define AHEAD 4     // loads in flight

typedef unsigned int u32;

__device__ __forceinline__ u32 tf32(float x) {
    u32 out;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
    return out;
}

// A TF32 number, and the rest that makes it a float32.
struct Pair {
    u32 high, low;
};

__device__ __forceinline__ Pair pair(float x) {
    const u32 high = tf32(x);
    return {high, EXACT ? tf32(x - __uint_as_float(high)) : 0};
}

__device__ __forceinline__ void mma(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply(float (&d)[4], const Pair (&a)[4], const Pair (&b)[2]) {
    if (EXACT) {
        mma(d, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
        mma(d, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
    }
    mma(d, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
}

__device__ __forceinline__ float relu(float x) { return x <= 0 ? 0 : x; }  // keeps NaN

extern "C" __global__ void __launch_bounds__(128)
down(float* X, const float* W, const float* S, float* WEIGHT, float* BIAS, int N, int K, int B) {
    __shared__ __align__(16) float shared[CLASSES * PITCH];
    const int blocks = (N + 63) / 64, block = blockIdx.x % blocks;
    const long long model = blockIdx.x / blocks;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int row = block * 64 + warp * 16 + g;  // and row + 8
    X += model * N * B, W += model * K * N, S += model * K * B, WEIGHT += model * K * N;
    Pair w[2][4];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int h = row + i % 2 * 8, k = i / 4 * 8 + i % 4 / 2 * 4 + q;
        w[i / 4][i % 4] = pair(h < N && k < K ? W[k * N + h] : 0);
    }
    float grad[2][4] = {}, total[CLASSES / 4] = {};
    for (int begin = 0; begin < B; begin += BATCH) {
        __syncthreads();
        for (int i = threadIdx.x; i < CLASSES * BATCH; i += 128) {
            const int k = i / BATCH, b = begin + i % BATCH;
            shared[k * PITCH + i % BATCH] = k < K && b < B ? S[k * B + b] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < CLASSES / 4; i++)
            for (int b = lane; block == 0 && b < BATCH; b += 32)
                total[i] += shared[(4 * i + warp) * PITCH + b];
        for (int ahead = 4 * q; ahead < BATCH && begin + ahead - 4 * q < B; ahead += 16 * AHEAD) {
            float x[AHEAD][2][4];
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int b = begin + ahead + 16 * i;
                    const float* from = X + (long long)(row + 8 * h) * B + b;
                    if (row + 8 * h >= N || b >= B) {
                        x[i][h][0] = x[i][h][1] = x[i][h][2] = x[i][h][3] = 0;
                    } else if (B % 4 == 0) {
                        *(float4*)x[i][h] = *(const float4*)from;
                    } else {
                        for (int e = 0; e < 4; e++) x[i][h][e] = b + e < B ? from[e] : 0;
                    }
                }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const float* s = shared + ahead + 16 * i;  // b is 4 q + 2 e and its neighbour
                const float4 upper = *(const float4*)(s + g * PITCH);
                const float4 lower = *(const float4*)(s + (g + 8) * PITCH);
                const Pair left[2][4] = {{pair(upper.x), pair(lower.x), pair(upper.y), pair(lower.y)},
                                         {pair(upper.z), pair(lower.z), pair(upper.w), pair(lower.w)}};
                float part[2][4] = {}, back[2][4] = {};
#pragma unroll
                for (int e = 0; e < 2; e++) {
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        multiply(part[h], left[e], {pair(relu(x[i][h][2 * e])),
                                                    pair(relu(x[i][h][2 * e + 1]))});
                    const float* column = s - 4 * q + g / 2 * 4 + 2 * e + g % 2 + q * PITCH;
                    multiply(back[e], w[0], {pair(column[0]), pair(column[4 * PITCH])});
                    if (K > 8)
                        multiply(back[e], w[1], {pair(column[8 * PITCH]), pair(column[12 * PITCH])});
                }
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int b = begin + ahead + 16 * i;
                    float* to = X + (long long)(row + 8 * h) * B + b;
                    float out[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        grad[h][e] += part[h][e];  // rounded, as tensor cores do not
                        const float slope = x[i][h][e] <= 0 ? 0 : back[e / 2][2 * h + e % 2];
                        out[e] = EXACT ? slope : __uint_as_float(tf32(slope));
                    }
                    if (row + 8 * h >= N || b >= B) continue;
                    if (B % 4 == 0) *(float4*)to = *(float4*)out;
                    else
                        for (int e = 0; e < 4 && b + e < B; e++) to[e] = out[e];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int h = block * 64 + warp * 16 + i / 4 * 8 + 2 * q + i % 2, k = g + i % 4 / 2 * 8;
        if (h < N && k < K) WEIGHT[k * N + h] = grad[i / 4][i % 4];
    }
#pragma unroll
    for (int i = 0; i < CLASSES / 4; i++) {
        for (int far = 16; far; far /= 2) total[i] += __shfl_xor_sync(~0u, total[i], far);
        if (lane == 0 && block == 0 && 4 * i + warp < K) BIAS[model * K + 4 * i + warp] = total[i];
    }
}
