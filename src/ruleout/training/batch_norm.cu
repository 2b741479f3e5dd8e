// What a batch norm adds up, over all pixels, for images in bf16 whose channels lie last.
//
// From each number the centre of its channel is taken. Added up are factors, and factors times what is
// left, in float32 and always in the same order. PAIRED, a factor is the number of SLOPE at that place,
// and CENTRE is given; else a factor is what is left, and the first pixel is the centre.
//
// Given from outside: CHANNELS, PAIRED, and THREADS, which is SPAN times a power of two, so that a
// thread meets the same channels again and again.

typedef unsigned int u32;
typedef unsigned short u16;

#define ALIKE (CHANNELS % 8 == 0 ? 8 : CHANNELS % 4 == 0 ? 4 : CHANNELS % 2 == 0 ? 2 : 1)
#define SPAN (CHANNELS / ALIKE)  // threads that read eight numbers each, until channels repeat
#define AHEAD 4                  // of those, in flight

__device__ __forceinline__ float low(u32 both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high(u32 both) { return __uint_as_float(both & 0xffff0000); }

// X and SLOPE hold COUNT times eight numbers; OUT is [2, CHANNELS, blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
sums(const uint4* __restrict__ X, const uint4* __restrict__ SLOPE, const float* __restrict__ CENTRE,
     float* __restrict__ OUT, int COUNT) {
    __shared__ float shared[16][THREADS];
    const int me = threadIdx.x, stride = gridDim.x * THREADS;
    float centre[8], all[16] = {};
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int channel = (me * 8 + j) % CHANNELS;
        centre[j] = PAIRED ? CENTRE[channel] : low(((const u16*)X)[channel]);
    }
    for (int first = blockIdx.x * THREADS + me; first < COUNT; first += AHEAD * stride) {
        uint4 x[AHEAD], slope[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int i = first + k * stride < COUNT ? first + k * stride : first;
            x[k] = X[i];
            slope[k] = PAIRED ? SLOPE[i] : x[k];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            if (first + k * stride >= COUNT) break;
            const u32 here[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
            const u32 there[4] = {slope[k].x, slope[k].y, slope[k].z, slope[k].w};
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float left = (j % 2 ? high(here[j / 2]) : low(here[j / 2])) - centre[j];
                const float factor = PAIRED ? j % 2 ? high(there[j / 2]) : low(there[j / 2]) : left;
                all[j] += factor;
                all[8 + j] += factor * left;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 16; j++) shared[j][me] = all[j];
#pragma unroll
    for (int half = THREADS / 2; half >= SPAN; half /= 2) {
        __syncthreads();
        for (int i = me; i < 16 * half; i += THREADS) shared[i / half][i % half] += shared[i / half][i % half + half];
    }
    __syncthreads();
    for (int i = me; i < 2 * CHANNELS; i += THREADS) {
        const int which = i / CHANNELS * 8;
        float sum = 0;
        for (int at = i % CHANNELS; at < SPAN * 8; at += CHANNELS) sum += shared[which + at % 8][at / 8];
        OUT[i * gridDim.x + blockIdx.x] = sum;
    }
}
