// Convolutions of few channels in bf16, for images whose channels lie last.
//
// Pixels of all images are one row of numbers: X [pixels, IN], SLOPE [N, MADE]. What a tile needs of
// them is one piece, the neighbours above and below included, so it is fetched as it lies. A tensor core
// is then told where each pixel's neighbour lies in shared memory; beyond the border that is a row of
// zeros. Products are added up in float32, always in the same order.
//
// Given from outside, but for `add_up`: HEIGHT and WIDTH of the images of the N pixels whose neighbours
// are read, IN, MADE, SIZE, STRIDE, TURNED, WARPS, and ROWS, how many pixels of X a tile needs; for
// `convolve` ACROSS, ALONG and BUFFERS, for `correlate` DOWN, ACROSS, LINES, STEPS and COPIES.

typedef unsigned int u32;
typedef unsigned short u16;

extern __shared__ __align__(16) unsigned char memory[];

// begin of instructions
__device__ __forceinline__ void load(u32 (&d)[4], const void* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"((u32)__cvta_generic_to_shared(from)));
}

__device__ __forceinline__ void load_turned(u32 (&d)[4], const void* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"((u32)__cvta_generic_to_shared(from)));
}

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int BYTES> __device__ __forceinline__ void copy(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((u32)__cvta_generic_to_shared(to)),
                 "l"(from), "n"(BYTES) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int LEFT> __device__ __forceinline__ void arrive() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ u32 pair(float low, float high) {
    u32 out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}
// end of instructions

#ifdef WARPS
#define THREADS (WARPS * 32)
#define TAPS (SIZE * SIZE)
#define INSIDE ((IN + 15) / 16 * 16)
#define OUTSIDE ((MADE + 15) / 16 * 16)
#define BREADTH (TURNED ? WIDTH / STRIDE : WIDTH * STRIDE)  // of the images of X
#define PIXELS (TURNED ? N / (STRIDE * STRIDE) : N * (STRIDE * STRIDE))  // of X
#define APART (TURNED && STRIDE > 1)  // of a pixel's neighbours only some are in X

__device__ __forceinline__ void clear(int bytes) {
    for (int i = threadIdx.x * 16; i < bytes; i += THREADS * 16) *(uint4*)(memory + i) = {0, 0, 0, 0};
    __syncthreads();
}

// Fetch columns `from` to `from + WIDE` of some rows of [N, OF]; rows and columns that are not there stay.
template <int WIDE, int OF>
__device__ __forceinline__ void fetch(unsigned char* to, const u16* X, int begin, int rows, int N, int from) {
    constexpr int many = WIDE % 8 == 0 && OF % 8 == 0 ? 8 : WIDE % 4 == 0 && OF % 4 == 0 ? 4 : OF % 2 ? 1 : 2;
    constexpr int each = WIDE / many, pitch = (WIDE + 15) / 16 * 32 + 16;
    constexpr int ahead = many > 1 ? 1 : 8;  // loads in flight, where each waits for its number
    for (int first = threadIdx.x; first < rows * each; first += THREADS * ahead) {
        u16 single[ahead];
        int place[ahead];
#pragma unroll
        for (int k = 0; k < ahead; k++) {
            const int i = first + k * THREADS, row = begin + i / each, column = i % each * many;
            const bool there = i < rows * each && row >= 0 && row < N && from + column < OF;
            const u16* source = X + (there ? row * OF + from + column : 0);
            place[k] = there ? i / each * pitch + column * 2 : -1;
            if constexpr (many == 1) single[k] = *source;
            else if (there) copy<many * 2>(to + place[k], source);
        }
#pragma unroll
        for (int k = 0; many == 1 && k < ahead; k++)
            if (place[k] >= 0) *(u16*)(to + place[k]) = single[k];
    }
}

// Where in X the neighbours of pixel p begin, and, of all pixels from p on, the first of them.
__device__ __forceinline__ int begin(int p) {
    if (STRIDE == 1) return p - SIZE / 2 * (BREADTH + 1);
    if (APART) return p / WIDTH / STRIDE * BREADTH + p % WIDTH / STRIDE;
    return (p / WIDTH * BREADTH + p % WIDTH) * STRIDE - SIZE / 2 * (BREADTH + 1);
}

__device__ __forceinline__ int earliest(int p) { return APART ? p / WIDTH / STRIDE * BREADTH : begin(p); }

// How far behind that a neighbour lies.
__device__ __forceinline__ constexpr int behind(int tap) {
    return tap / SIZE / (APART ? STRIDE : 1) * BREADTH + tap % SIZE / (APART ? STRIDE : 1);
}

// Which neighbours of a pixel are there: a bit for each along one side, then for all, line by line.
__device__ __forceinline__ u32 there(int at, int side) {
    if (SIZE == 1) return at % (APART ? STRIDE : 1) == 0;
    if (APART) return at % STRIDE ? 1 | (at < side - 1) << 2 : 2;
    return (at > 0) | 2 | (at * STRIDE < side * STRIDE - 1) << 2;
}

__device__ __forceinline__ u32 neighbours(int p) {
    const u32 lines = there(p / WIDTH % HEIGHT, HEIGHT);
    return ((lines & 1) | (lines & 2) << 2 | (lines & 4) << 4) * there(p % WIDTH, WIDTH);
}
#endif

#ifdef ALONG
#define TILES (ACROSS / 8)        // of a warp, across channels
#define BANDS (OUTSIDE / ACROSS)  // of channels, a warp each
#define TILE (WARPS / BANDS * ALONG * 16)
#define PITCH (INSIDE * 2 + 16)   // bytes from row to row: neighbours start in different banks
#define KEYS (TAPS * INSIDE)
#define BROAD (TURNED ? OUTSIDE * 2 + 16 : KEYS * 2 + 16)

// Where a channel lies among the columns of the products, so that a thread holds neighbours.
__device__ __forceinline__ int place(int channel) {
    const int c = channel % ACROSS;
    return channel - c + c % (2 * TILES) / 2 * 8 + c / (2 * TILES) * 2 + c % 2;
}

// Weights [MADE, SIZE, SIZE, IN] to [channel, key], or, TURNED, [IN, SIZE, SIZE, MADE] to [key, channel].
__device__ __forceinline__ void weigh(unsigned char* to, const float* W) {
    constexpr int last = TURNED ? MADE : IN, many = last % 4 ? 1 : 4, count = MADE * TAPS * IN;
    constexpr int steps = (count + THREADS * many - 1) / (THREADS * many), ahead = steps < 18 ? steps : 18;
    for (int step = 0; step < steps; step += ahead) {
        float w[ahead][many];  // all of them in flight
#pragma unroll
        for (int k = 0; k < ahead; k++) {
            const int i = ((step + k) * THREADS + threadIdx.x) * many;
            const float* from = W + (i < count ? i : 0);
            if constexpr (many == 4) *(float4*)w[k] = *(const float4*)from;
            else w[k][0] = *from;
        }
#pragma unroll
        for (int k = 0; k < ahead; k++) {
            const int i = ((step + k) * THREADS + threadIdx.x) * many;
            const int inner = i % last, tap = i / last % TAPS, outer = i / last / TAPS;
            if (i >= count) continue;
            if constexpr (TURNED) {
                unsigned char* row = to + ((TAPS - 1 - tap) * INSIDE + outer) * BROAD;
                if constexpr (many == 4) {
                    *(u32*)(row + place(inner) * 2) = pair(w[k][0], w[k][1]);
                    *(u32*)(row + place(inner + 2) * 2) = pair(w[k][2], w[k][3]);
                } else {
                    *(u16*)(row + place(inner) * 2) = (u16)pair(w[k][0], 0);
                }
            } else {
                unsigned char* row = to + place(outer) * BROAD + (tap * INSIDE + inner) * 2;
                if constexpr (many == 4) *(uint2*)row = {pair(w[k][0], w[k][1]), pair(w[k][2], w[k][3])};
                else *(u16*)row = (u16)pair(w[k][0], 0);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
convolve(const u16* __restrict__ X, const float* __restrict__ W, u16* __restrict__ OUT, int N) {
    unsigned char *tiles = memory + PITCH, *weights = tiles + BUFFERS * ROWS * PITCH;  // after zeros
    const int lane = threadIdx.x % 32, band = threadIdx.x / 32 % BANDS;
    const int at = threadIdx.x / 32 / BANDS * ALONG * 16, stride = gridDim.x * TILE;
    auto ask = [&](int first, int i) {
        if (first < N) fetch<IN, IN>(tiles + i % BUFFERS * ROWS * PITCH, X, earliest(first), ROWS, PIXELS, 0);
        commit();
    };
    clear(IN % 16 || MADE % 16 ? PITCH * (1 + BUFFERS * ROWS) + BROAD * (TURNED ? KEYS : OUTSIDE) : PITCH);
    ask(blockIdx.x * TILE, 0);
    weigh(weights, W);
    const int k = lane / 8 % 2 * 8 + (TURNED ? lane % 8 : 0), n = lane / 16 * 8 + (TURNED ? 0 : lane % 8);
    const unsigned char* weight = weights + (TURNED ? k * BROAD + (band * ACROSS + n) * 2
                                                    : (band * ACROSS + n) * BROAD + k * 2);
    const int channel = band * ACROSS + lane % 4 * 2 * TILES;
    constexpr int many = TILES % 4 == 0 && MADE % 8 == 0 ? 4 : MADE % 4 == 0 ? 2 : 1;
    for (int first = blockIdx.x * TILE, i = 0; first < N; first += stride, i++) {
        if (BUFFERS > 1) ask(first + stride, i + 1);
        arrive<BUFFERS - 1>();
        __syncthreads();
        const unsigned char *pixel[ALONG], *none = memory + lane / 16 * 16;
        u32 known[ALONG];
#pragma unroll
        for (int m = 0; m < ALONG; m++) {
            const int p = first + at + m * 16 + lane % 16;
            pixel[m] = tiles + (i % BUFFERS * ROWS + begin(p) - earliest(first)) * PITCH + lane / 16 * 16;
            known[m] = neighbours(p);
        }
        float out[ALONG][TILES][4] = {};
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            const unsigned char* from[ALONG];
#pragma unroll
            for (int m = 0; m < ALONG; m++) from[m] = known[m] >> tap & 1 ? pixel[m] + behind(tap) * PITCH : none;
#pragma unroll
            for (int key = 0; key < INSIDE; key += 16) {
                u32 b[TILES / 2][4];
#pragma unroll
                for (int t = 0; t < TILES / 2; t++) {
                    const int deep = tap * INSIDE + key;
                    if (TURNED) load_turned(b[t], weight + deep * BROAD + t * 32);
                    else load(b[t], weight + t * 16 * BROAD + deep * 2);
                }
#pragma unroll
                for (int m = 0; m < ALONG; m++) {
                    u32 a[4];
                    load(a, from[m] + key * 2);
#pragma unroll
                    for (int t = 0; t < TILES; t++) mma(out[m][t], a, b[t / 2][t % 2 * 2], b[t / 2][t % 2 * 2 + 1]);
                }
            }
        }
#pragma unroll
        for (int h = 0; h < ALONG * 2; h++) {
            const int p = first + at + h * 8 + lane / 4;
            if (p >= N) continue;
#pragma unroll
            for (int t = 0; t < TILES; t += many) {
                u16* to = OUT + p * MADE + channel + 2 * t;
                u32 both[many];
#pragma unroll
                for (int e = 0; e < many; e++)
                    both[e] = pair(out[h / 2][t + e][h % 2 * 2], out[h / 2][t + e][h % 2 * 2 + 1]);
                if (channel + 2 * t >= MADE) continue;
                if constexpr (many == 4) *(uint4*)to = *(uint4*)both;
                else if constexpr (many == 2) *(uint2*)to = *(uint2*)both;
                else if constexpr (MADE % 2 == 0) *(u32*)to = both[0];
                else {
                    to[0] = (u16)both[0];
                    if (channel + 2 * t + 1 < MADE) to[1] = (u16)(both[0] >> 16);
                }
            }
        }
        if (BUFFERS > 1) __syncthreads();
    }
}
#endif

#ifdef DOWN
// A block adds up DOWN of the MADE and ACROSS of the IN channels, over PART pixels. Its warps share the
// lines of the neighbours, LINES for each, and of a tile take every so many pixels.
#define SHARES (WARPS * LINES / SIZE)
#define TILE (SHARES * STEPS * 16)
#define PITCH_X (ACROSS * 2 + 16)
#define PITCH_SLOPE (DOWN * 2 + 16)
#define BUFFER (ROWS * PITCH_X + TILE * PITCH_SLOPE)
#define ZEROS (ACROSS > DOWN ? PITCH_X : PITCH_SLOPE)
#define BANDS (INSIDE / ACROSS)
#define SPACE (ACROSS + 8)  // of a row of sums: neighbours lie in different banks
#define COUNT (TAPS * DOWN * SPACE)

extern "C" __global__ void __launch_bounds__(THREADS)
correlate(const u16* __restrict__ X, const u16* __restrict__ SLOPE, float* __restrict__ OUT, int N, int PART) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int share = warp % SHARES, line = warp / SHARES * LINES;
    const int down = blockIdx.y / BANDS * DOWN, across = blockIdx.y % BANDS * ACROSS;
    const int start = blockIdx.x * PART, end = start + PART < N ? start + PART : N;
    const int ka = lane / 16 * 8 + lane % 8, kb = lane / 8 % 2 * 8 + lane % 8;  // which pixels a lane reads
    auto ask = [&](int i) {
        unsigned char* to = memory + ZEROS + i % 2 * BUFFER;
        const int first = start + i * TILE;
        if (first < end) {
            fetch<ACROSS, IN>(to, X, earliest(first), ROWS, PIXELS, across);
            fetch<DOWN, MADE>(to + ROWS * PITCH_X, SLOPE, first, TILE, N, down);
        }
        commit();
    };
    clear(ZEROS);
    ask(0);
    float out[LINES * SIZE][DOWN / 16][ACROSS / 8][4] = {};
    for (int i = 0; start + i * TILE < end; i++) {
        ask(i + 1);
        arrive<1>();
        __syncthreads();
        const unsigned char *x = memory + ZEROS + i % 2 * BUFFER, *slope = x + ROWS * PITCH_X;
        const int first = start + i * TILE;
        for (int step = share; step < TILE / 16; step += SHARES) {
            const int pa = step * 16 + ka, pb = first + step * 16 + kb;
            u32 a[DOWN / 16][4];
#pragma unroll
            for (int m = 0; m < DOWN / 16; m++)
                load_turned(a[m], first + pa < end ? slope + pa * PITCH_SLOPE + m * 32 + lane / 8 % 2 * 16 : memory);
            const u32 known = pb < end ? neighbours(pb) >> line * SIZE : 0;
            const unsigned char* pixel =
                x + (begin(pb) - earliest(first) + behind(line * SIZE)) * PITCH_X + lane / 16 * 16;
#pragma unroll
            for (int tap = 0; tap < LINES * SIZE; tap++) {
                const unsigned char* from = known >> tap & 1 ? pixel + behind(tap) * PITCH_X : memory;
#pragma unroll
                for (int n = 0; n < ACROSS / 16; n++) {
                    u32 b[4];
                    load_turned(b, from + n * 32);
#pragma unroll
                    for (int m = 0; m < DOWN / 16; m++) {
                        mma(out[tap][m][2 * n], a[m], b[0], b[1]);
                        mma(out[tap][m][2 * n + 1], a[m], b[2], b[3]);
                    }
                }
            }
        }
        __syncthreads();
    }
    arrive<0>();
    __syncthreads();
    float* sums = (float*)memory;  // [COPIES, TAPS, DOWN, SPACE]
    for (int turn = 0; turn < SHARES / COPIES; turn++) {
        constexpr int pairs = LINES * SIZE * (DOWN / 8) * (ACROSS / 8), some = 4;  // in flight
#pragma unroll
        for (int first = 0; share / COPIES == turn && first < pairs; first += some) {
            float2 *to[some], sum[some];
#pragma unroll
            for (int k = 0; k < some; k++) {
                const int i = first + k, n = i % (ACROSS / 8), m = i / (ACROSS / 8) % (DOWN / 8);
                const int tap = i / (ACROSS / 8) / (DOWN / 8), row = (line * SIZE + tap) * DOWN + m * 8 + lane / 4;
                to[k] = (float2*)(sums + share % COPIES * COUNT + row * SPACE + n * 8 + lane % 4 * 2);
                sum[k] = turn ? *to[k] : float2{0, 0};
                sum[k].x += out[tap][m / 2][n][m % 2 * 2];
                sum[k].y += out[tap][m / 2][n][m % 2 * 2 + 1];
            }
#pragma unroll
            for (int k = 0; k < some; k++) *to[k] = sum[k];
        }
        __syncthreads();
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < DOWN * TAPS * ACROSS; i += THREADS) {
        const int o = i / ACROSS / TAPS, tap = i / ACROSS % TAPS, j = i % ACROSS;
        float sum = 0;
        for (int copy = 0; copy < COPIES; copy++) sum += sums[copy * COUNT + (tap * DOWN + o) * SPACE + j];
        if (down + o < MADE && across + j < IN)
            OUT[((blockIdx.x * MADE + down + o) * TAPS + tap) * IN + across + j] = sum;
    }
}
#endif

// Add up PARTS [parts, many], 32 numbers a block.
extern "C" __global__ void add_up(const float* PARTS, float* OUT, int parts, int many) {
    __shared__ float sums[8][32];
    const int at = blockIdx.x * 32 + threadIdx.x % 32, share = threadIdx.x / 32;
    float sum = 0;
    if (at < many)
#pragma unroll 8
        for (int part = share; part < parts; part += 8) sum += PARTS[part * many + at];
    sums[share][threadIdx.x % 32] = sum;
    __syncthreads();
    if (share || at >= many) return;
    for (int s = 1; s < 8; s++) sum += sums[s][threadIdx.x];
    OUT[at] = sum;
}
