// What a batch norm needs to know of all pixels, for images in bf16 whose channels lie last.
//
// From each number the centre of its channel is taken. Added up are factors, and factors times what is
// left, in float32 and always in the same order: by every block over some pixels, then by the last block
// that is done over all blocks. On the way there the first pixel is the centre, and a factor is what is
// left; on the way BACK the mean is the centre, and a factor is the number of SLOPE at that place.
//
// Given from outside: CHANNELS, BACK, MOMENTUM, EPSILON, and THREADS, which is SPAN times a power of two,
// so that a thread meets the same channels again and again.

typedef unsigned int u32;
typedef unsigned short u16;

#define ALIKE (CHANNELS % 8 == 0 ? 8 : CHANNELS % 4 == 0 ? 4 : CHANNELS % 2 == 0 ? 2 : 1)
#define SPAN (CHANNELS / ALIKE)  // threads that read eight numbers each, until channels repeat
#define AHEAD 4                  // of those, in flight
#define SUMS (2 * CHANNELS)
#define GROUPS (SUMS < THREADS ? THREADS / SUMS : 1)  // of threads, that share the blocks among them

__device__ __forceinline__ float low(u32 both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high(u32 both) { return __uint_as_float(both & 0xffff0000); }

// X and SLOPE hold COUNT times eight numbers, KNOWN is what was found on the way there: means and scales,
// [2, CHANNELS]. PARTS is [blocks, SUMS], TURN 0 before and after. FOUND is means and scales or, on the
// way BACK, the slopes of bias and weight.
extern "C" __global__ void __launch_bounds__(THREADS)
add_up(const uint4* __restrict__ X, const uint4* __restrict__ SLOPE, const float* __restrict__ KNOWN,
       float* PARTS, u32* TURN, float* __restrict__ FOUND, float* __restrict__ RUNNING_MEAN,
       float* __restrict__ RUNNING_VARIANCE, long long* BATCHES, int COUNT) {
    __shared__ float sums[16][THREADS], whole[GROUPS][SUMS];
    __shared__ u32 turn;
    const int me = threadIdx.x, stride = gridDim.x * THREADS;
    float centre[8], all[16] = {};
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int channel = (me * 8 + j) % CHANNELS;
        centre[j] = BACK ? KNOWN[channel] : low(((const u16*)X)[channel]);
    }
    for (int first = blockIdx.x * THREADS + me; first < COUNT; first += AHEAD * stride) {
        uint4 x[AHEAD], slope[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int i = first + k * stride < COUNT ? first + k * stride : first;
            x[k] = X[i];
            slope[k] = BACK ? SLOPE[i] : x[k];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            if (first + k * stride >= COUNT) break;
            const u32 here[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
            const u32 there[4] = {slope[k].x, slope[k].y, slope[k].z, slope[k].w};
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float left = (j % 2 ? high(here[j / 2]) : low(here[j / 2])) - centre[j];
                const float factor = BACK ? j % 2 ? high(there[j / 2]) : low(there[j / 2]) : left;
                all[j] += factor;
                all[8 + j] += factor * left;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 16; j++) sums[j][me] = all[j];
#pragma unroll
    for (int half = THREADS / 2; half >= SPAN; half /= 2) {
        __syncthreads();
        for (int i = me; i < 16 * half; i += THREADS) sums[i / half][i % half] += sums[i / half][i % half + half];
    }
    __syncthreads();
    for (int i = me; i < SUMS; i += THREADS) {
        const int which = i / CHANNELS * 8;
        float sum = 0;
        for (int at = i % CHANNELS; at < SPAN * 8; at += CHANNELS) sum += sums[which + at % 8][at / 8];
        PARTS[blockIdx.x * SUMS + i] = sum;
    }
    __threadfence();
    __syncthreads();
    if (me == 0) turn = atomicInc(TURN, gridDim.x - 1);  // 0 again after the last
    __syncthreads();
    if (turn < gridDim.x - 1) return;
    __threadfence();
    for (int i = me; i < GROUPS * SUMS; i += THREADS) {
        float sum = 0;
#pragma unroll 16
        for (int block = i / SUMS; block < gridDim.x; block += GROUPS) sum += __ldcg(PARTS + block * SUMS + i % SUMS);
        whole[i / SUMS][i % SUMS] = sum;
    }
    __syncthreads();
    if (!BACK && me == 0) ++*BATCHES;
    for (int channel = me; channel < CHANNELS; channel += THREADS) {
        float sum = 0, product = 0;
        for (int group = 0; group < GROUPS; group++) {
            sum += whole[group][channel];
            product += whole[group][CHANNELS + channel];
        }
        if (BACK) {
            FOUND[channel] = sum, FOUND[CHANNELS + channel] = product * KNOWN[CHANNELS + channel];
            continue;
        }
        const float pixels = (float)COUNT * 8 / CHANNELS, away = sum / pixels;
        const float mean = low(((const u16*)X)[channel]) + away, square = product / pixels - away * away;
        const float variance = square < 0 ? 0 : square;  // one that is not a number stays so
        FOUND[channel] = mean, FOUND[CHANNELS + channel] = 1 / sqrtf(variance + (float)(EPSILON));
        RUNNING_MEAN[channel] += (float)(MOMENTUM) * (mean - RUNNING_MEAN[channel]);
        RUNNING_VARIANCE[channel] +=
            (float)(MOMENTUM) * (variance * (pixels / (pixels - 1)) - RUNNING_VARIANCE[channel]);
    }
}
