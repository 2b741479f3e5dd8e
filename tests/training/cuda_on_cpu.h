// A block of threads of a CUDA kernel on a CPU: each is a fiber, which yields where it waits for others.
// Stands for what the sources take from CUDA; copies arrive at once, so no race is found.

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static
#define __syncthreads() wait_for(everybody, total)
#define threadIdx (threads[current])

typedef unsigned int u32;
typedef unsigned short u16;
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct Place { int x, y, z; };

alignas(1024) unsigned char memory[1 << 20];
long shared_bytes;  // of these, what the kernel asked for
Place blockIdx, gridDim;
static Place threads[1024];
static int current, total;
static std::vector<ucontext_t> fibers;
static std::vector<char> over, stacks;
static ucontext_t home;

struct Barrier { int count = 0, turn = 0; };
static Barrier everybody;
struct Warp { Barrier barrier; const unsigned char* from[32]; u32 a[32][4], b[32][2]; };
static Warp warps[32];

inline void require(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "block %d, %d, thread %d: %s\n", blockIdx.x, blockIdx.y, current, what);
    exit(1);
}

inline void yield() {
    const int me = current;
    do current = (current + 1) % total;
    while (over[current] && current != me);
    if (current != me) swapcontext(&fibers[me], &fibers[current]);
}

inline void wait_for(Barrier& barrier, int many) {
    const int turn = barrier.turn;
    if (++barrier.count == many) barrier.count = 0, barrier.turn++;
    else
        while (barrier.turn == turn) yield();
}

static void (*body)();

inline void enter() {
    body();
    over[current] = 1;
    for (int i = 0; i < total; i++)
        if (!over[i]) {
            current = i;
            setcontext(&fibers[i]);
        }
    setcontext(&home);
}

inline void launch(int across, int down, int many, long bytes, void (*kernel)()) {
    const size_t each = 1 << 17;
    gridDim = {across, down, 1}, body = kernel, total = many, shared_bytes = bytes;
    fibers.resize(many), stacks.resize(many * each);
    for (int block = 0; block < across * down; block++) {
        blockIdx = {block % across, block / across, 0};
        memset(memory, 0xff, sizeof memory);  // NaN: what is not written must not be read
        over.assign(many, 0), everybody = {};
        for (auto& warp : warps) warp.barrier = {};
        for (int i = 0; i < many; i++) {
            threads[i] = {i, 0, 0};
            getcontext(&fibers[i]);
            fibers[i].uc_stack.ss_sp = &stacks[i * each], fibers[i].uc_stack.ss_size = each;
            fibers[i].uc_link = nullptr;
            makecontext(&fibers[i], enter, 0);
        }
        current = 0;
        swapcontext(&home, &fibers[0]);
    }
}

inline void inside(const void* at, int bytes) {
    const long from = (const unsigned char*)at - memory;
    require(from >= 0 && from + bytes <= shared_bytes, "beyond the shared memory");
    require(from % bytes == 0, "not aligned");
}

inline void load_any(u32 (&d)[4], const void* from, bool turned) {
    const int lane = current % 32;
    Warp& warp = warps[current / 32];
    inside(from, 16);
    warp.from[lane] = (const unsigned char*)from;
    wait_for(warp.barrier, 32);
    for (int i = 0; i < 4; i++) {
        const unsigned char** rows = warp.from + i * 8;
        if (turned) {
            const int row = lane % 4 * 2, column = lane / 4 * 2;
            d[i] = *(u16*)(rows[row] + column) | (u32) * (u16*)(rows[row + 1] + column) << 16;
        } else {
            d[i] = *(u32*)(rows[lane / 4] + lane % 4 * 4);
        }
    }
    wait_for(warp.barrier, 32);
}

inline void load(u32 (&d)[4], const void* from) { load_any(d, from, false); }
inline void load_turned(u32 (&d)[4], const void* from) { load_any(d, from, true); }

inline float __uint_as_float(u32 bits) {
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

inline void __threadfence() {}
inline float __ldcg(const float* from) { return *from; }
inline u32 atomicInc(u32* at, u32 most) {
    const u32 before = *at;
    *at = before < most ? before + 1 : 0;
    return before;
}

inline float number(u32 bits) { return __uint_as_float(bits << 16); }

inline void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    const int lane = current % 32;
    Warp& warp = warps[current / 32];
    memcpy(warp.a[lane], a, sizeof a);
    warp.b[lane][0] = b0, warp.b[lane][1] = b1;
    wait_for(warp.barrier, 32);
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            const u32 left = warp.a[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            const u32 right = warp.b[column * 4 + k % 8 / 2][k / 8];
            d[i] += number(k % 2 ? left >> 16 : left & 0xffff) * number(k % 2 ? right >> 16 : right & 0xffff);
        }
    }
    wait_for(warp.barrier, 32);
}

template <int BYTES> inline void copy(void* to, const void* from) {
    inside(to, BYTES);
    require((size_t)from % BYTES == 0, "a source is not aligned");
    memcpy(to, from, BYTES);
}

inline void commit() {}
template <int LEFT> inline void arrive() {}

inline u32 rounded(float x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline u32 pair(float low, float high) { return rounded(low) | rounded(high) << 16; }

// A file of numbers, which begin where a copy of 16 bytes may.
template <typename Number> inline Number* read(const char* file, size_t more = 0) {
    std::ifstream stream(file, std::ios::binary | std::ios::ate);
    const size_t bytes = stream.tellg();
    Number* numbers = (Number*)aligned_alloc(64, (bytes / 64 + 1) * 64);
    stream.seekg(0).read((char*)numbers, bytes);
    return numbers;
}

template <typename Number> inline void write(const char* file, const Number* numbers, size_t many) {
    std::ofstream(file, std::ios::binary).write((const char*)numbers, many * sizeof(Number));
}
