#include "emulate_async.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "emulate.h"

namespace emulate
{

namespace
{

/* --- barriers in shared memory --- */

/* Shared memory begins with all bits set, which no barrier has. */
struct barrier {
    uint64_t left : 15, arrivals : 15, parity : 1, is_none : 1;
    int64_t bytes : 32; /* that are still to come */
};
static_assert(sizeof(barrier) == sizeof(uint64_t), "as large as a card's");

barrier &barrier_at(uint32_t address, site at)
{
    auto *found = static_cast<barrier *>(shared_memory(address, sizeof(barrier)));

    if (found->is_none)
        fail("no barrier was made at %u of shared memory, %s:%d", address, at.file,
             at.line);
    return *found;
}

void end_phase(barrier &b)
{
    if (b.left > 0 || b.bytes != 0)
        return;
    b.left = b.arrivals;
    b.parity ^= 1;
    for (auto &each : now->blocks) {
        for (thread &t : each->threads) {
            if (t.waits == MEMORY_BARRIER && t.barrier == &b)
                make_ready(&t);
        }
    }
}

} // namespace

void barrier_init(uint32_t address, int arrivals, site)
{
    auto *b = static_cast<barrier *>(shared_memory(address, sizeof(barrier)));

    *b = barrier();
    b->left = b->arrivals = (unsigned)arrivals;
}

void barrier_arrive(uint32_t address, int bytes, site at)
{
    barrier &b = barrier_at(address, at);

    if (b.left == 0)
        fail("one arrival too many, %s:%d", at.file, at.line);
    b.bytes += bytes;
    b.left--;
    end_phase(b);
}

void barrier_wait(uint32_t address, unsigned parity, site at)
{
    barrier &b = barrier_at(address, at);

    while (b.parity == parity) {
        running->barrier = &b;
        wait_for(MEMORY_BARRIER, "mbarrier.try_wait", at);
    }
}

void named_barrier(unsigned n_threads, site at)
{
    block *b = running->of;

    if (b->n_at_named > 0 && b->named_threads != n_threads)
        fail("a barrier of %u threads and of %u, %s:%d", b->named_threads, n_threads,
             at.file, at.line);
    b->named_threads = n_threads;
    if (++b->n_at_named < n_threads) {
        wait_for(NAMED_BARRIER, "bar.sync", at);
        return;
    }
    b->n_at_named = 0;
    for (thread &t : b->threads) {
        if (t.waits == NAMED_BARRIER)
            make_ready(&t);
    }
}

/* --- the copy engine --- */

namespace
{

/* What a CUtensorMap of emulate_encode holds. */
struct box_map {
    uint64_t mark;
    const unsigned char *data;
    int64_t columns, rows, pitch; /* the last in bytes */
    int box_columns, box_rows;
    int bytes;    /* of an element */
    bool to_tf32; /* rounded as they are copied */
};
constexpr uint64_t MARK = 0x656d756c61746564u;
constexpr uint32_t SWIZZLED = 128;
static_assert(sizeof(box_map) <= sizeof(CUtensorMap), "");

struct box_copy {
    box_map map;
    block *to;
    uint32_t address, barrier;
    int column, row;
};
std::vector<box_copy> copies;

/* Where the 128-byte swizzle has what would be there. */
uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 7 & 7) << 4;
}

/* Of a box, which has been asked for and checked. */
void bring(const box_copy &box)
{
    unsigned char *shared = box.to->dynamic->data;
    const box_map &map = box.map;

    for (int r = 0; r < map.box_rows; r++) {
        for (int c = 0; c < map.box_columns; c++) {
            const int64_t row = (int64_t)box.row + r, column = (int64_t)box.column + c;
            const bool is_there =
                row >= 0 && row < map.rows && column >= 0 && column < map.columns;
            const size_t bytes = (size_t)map.bytes;
            uint32_t bits = 0;

            if (is_there)
                memcpy(&bits, map.data + row * map.pitch + column * map.bytes, bytes);
            if (map.to_tf32)
                bits = emulate_tf32(bits);
            memcpy(shared + swizzled(box.address + (uint32_t)r * SWIZZLED +
                                     (uint32_t)(c * map.bytes)),
                   &bits, bytes);
        }
    }
}

void finish_copy(const box_copy &box)
{
    if (box.to->n_left == 0) {
        keep_message("a copy comes to shared memory of block %u of the cluster, which "
                     "has ended",
                     box.to->rank);
        return;
    }
    bring(box);
    auto *b = reinterpret_cast<barrier *>(box.to->dynamic->data + box.barrier);

    if (b->is_none) {
        keep_message("a copy ends at %u of shared memory, where no barrier is",
                     box.barrier);
        return;
    }
    b->bytes -= box.map.box_rows * (int)SWIZZLED;
    end_phase(*b);
}

} // namespace

void copy_box(uint32_t to, const CUtensorMap *map, uint32_t barrier, int column, int row,
              unsigned ranks, site at)
{
    box_copy box = { {}, nullptr, to, barrier, column, row };

    memcpy(&box.map, map, sizeof box.map);
    if (box.map.mark != MARK)
        fail("no tensor map, %s:%d", at.file, at.line);
    if (to % SWIZZLED != 0)
        fail("a copy to %u of shared memory, %s:%d", to, at.file, at.line);
    const unsigned rank = running->of->rank;

    for (const auto &each : now->blocks) {
        if (((ranks != 0 ? ranks : 1u << rank) >> each->rank & 1) == 0)
            continue;
        const uint32_t bytes = (uint32_t)box.map.box_rows * SWIZZLED;

        /* The first and the last of it, and that the block is there. */
        shared_memory(address_of_rank(to, each->rank), 1);
        shared_memory(address_of_rank(to + bytes - 1, each->rank), 1);
        barrier_at(address_of_rank(barrier, each->rank), at);
        box.to = each.get();
        copies.push_back(box);
    }
}

/* --- products of a warpgroup --- */

namespace
{

constexpr unsigned WARPGROUP = 128;
constexpr int ROWS = 64, COLUMNS = 256, MOST_DEEP = 16;

/* Addresses of an operand's elements, by its descriptor. */
struct operand {
    uint32_t begin, leading, stride, bytes;
    bool along_k;

    operand(uint64_t bits, bool k, int of_element)
        : begin((uint32_t)(bits & 0x3fff) << 4),
          leading((uint32_t)(bits >> 16 & 0x3fff) << 4),
          stride((uint32_t)(bits >> 32 & 0x3fff) << 4), bytes((uint32_t)of_element),
          along_k(k)
    {
    }

    /* Eight lines of 128 bytes are an atom: `stride` bytes from one to the next, and
     * `leading` from one line to what stands behind it in a row. */
    uint32_t operator()(int outer, int k) const
    {
        const int line = along_k ? outer : k;
        const uint32_t in_line = (uint32_t)(along_k ? k : outer) * bytes;

        return swizzled(begin + in_line / SWIZZLED * leading +
                        (uint32_t)(line / 8) * stride + (uint32_t)(line % 8) * SWIZZLED +
                        in_line % SWIZZLED);
    }
};

float load(const block &of, uint32_t address, const product &any)
{
    const size_t bytes = (size_t)any.bytes;
    uint32_t bits = 0;

    if (address + bytes > of.dynamic->bytes) {
        keep_message("a product reads at %u of %zu of shared memory", address,
                     of.dynamic->bytes);
        return 0;
    }
    memcpy(&bits, of.dynamic->data + address, bytes);
    return any.element(bits);
}

/* Of thread (w, g, t), see below: rows 16 w + g and eight further at t of k, and then at
 * t + 4. */
float in_registers(const std::vector<product *> &parts, int row, int k)
{
    const int thread = row / 16 * 32 + row % 8 * 4 + k % 4;
    const product &of = *parts[(size_t)thread];

    return of.element(of.registers[k / 4 * 2 + row % 16 / 8]);
}

/* Sums as they are: thread (w, g, t) of the warpgroup, w = thread / 32, g = lane / 4,
 * t = lane % 4, has of each eight columns the elements 2t and 2t + 1 of rows 16 w + g and
 * of rows eight further. */
float &sum_at(const std::vector<product *> &parts, int row, int column)
{
    const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;

    return parts[(size_t)thread]->sum[column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
}

void multiply(const block &of, const std::vector<product *> &parts)
{
    static float a[ROWS][MOST_DEEP], b[MOST_DEEP][COLUMNS];
    const product &any = *parts[0];
    const operand at_a(any.a, any.a_along_k, any.bytes);
    const operand at_b(any.b, any.b_along_k, any.bytes);
    const int depth = any.bytes == 4 ? 8 : 16;

    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < ROWS; i++)
            a[i][k] = any.registers != nullptr ? in_registers(parts, i, k)
                                               : load(of, at_a(i, k), any);
        for (int j = 0; j < COLUMNS; j++)
            b[k][j] = load(of, at_b(j, k), any);
    }
    for (int i = 0; i < ROWS; i++) {
        float sum[COLUMNS] = {};

        for (int k = 0; k < depth; k++) {
            for (int j = 0; j < COLUMNS; j++)
                sum[j] += a[i][k] * b[k][j];
        }
        for (int j = 0; j < COLUMNS; j++) {
            float &to = sum_at(parts, i, j);

            to = any.adds ? to + sum[j] : sum[j];
        }
    }
}

bool is_same(const product &x, const product &y)
{
    return x.a == y.a && x.b == y.b && x.adds == y.adds && x.element == y.element;
}

/* The threads of the warpgroup that begins with `first`. */
struct warpgroup {
    thread *first;

    /* All have committed a group that is not made yet. */
    bool can_go_on() const
    {
        for (unsigned i = 0; i < WARPGROUP; i++) {
            if (first[i].n_committed == first[i].n_made)
                return false;
        }
        return true;
    }

    void make_product(size_t number)
    {
        std::vector<product *> parts;

        for (unsigned i = 0; i < WARPGROUP; i++) {
            std::vector<product> &of = first[i].products;

            if (number >= of.size() || !is_same(of[number], first->products[number])) {
                keep_message("threads %u and %u of block %u multiply other things",
                             first->index, first[i].index, first->of->rank);
                return;
            }
            parts.push_back(&of[number]);
        }
        multiply(*first->of, parts);
    }

    /* The oldest group. */
    void go_on()
    {
        std::vector<product> &of = first->products;
        size_t n = 0;

        for (; n < of.size() && of[n].group == first->n_made && !now->has_failed; n++)
            make_product(n);
        for (unsigned i = 0; i < WARPGROUP && !now->has_failed; i++) {
            thread &t = first[i];

            t.products.erase(t.products.begin(), t.products.begin() + (ptrdiff_t)n);
            t.n_made++;
            if (t.waits == PRODUCTS)
                make_ready(&t);
        }
    }
};

} // namespace

void multiply_later(const product &of)
{
    running->products.push_back(of);
    running->products.back().group = running->n_committed;
}

void commit_products()
{
    running->n_committed++;
}

void wait_products(unsigned most_left, site at)
{
    while (running->n_committed - running->n_made > most_left)
        wait_for(PRODUCTS, "wgmma.wait_group", at);
}

/* --- what the scheduler calls --- */

bool advance_engines()
{
    std::vector<warpgroup> able;

    for (auto &each : now->blocks) {
        for (size_t i = 0; i + WARPGROUP <= each->threads.size(); i += WARPGROUP) {
            const warpgroup of = { &each->threads[i] };

            if (of.can_go_on())
                able.push_back(of);
        }
    }
    if (copies.empty() && able.empty())
        return false;
    const size_t chosen = random_below(copies.size() + able.size());

    if (chosen < copies.size()) {
        std::swap(copies[chosen], copies.back());
        const box_copy box = copies.back();

        copies.pop_back();
        finish_copy(box);
    } else {
        able[chosen - copies.size()].go_on();
    }
    return true;
}

void close_engines()
{
    if (!copies.empty())
        keep_message("copies are under way when the cluster ends: %zu", copies.size());
    copies.clear();
    for (auto &each : now->blocks) {
        for (const thread &t : each->threads) {
            if (!t.products.empty())
                keep_message("thread %u of block %u ends without its products", t.index,
                             each->rank);
        }
    }
}

} // namespace emulate

/* --- tensor maps --- */

extern "C" CUresult emulate_encode(CUtensorMap *map, CUtensorMapDataType type,
                                   cuuint32_t rank, void *data, const cuuint64_t *sizes,
                                   const cuuint64_t *strides, const cuuint32_t *box,
                                   const cuuint32_t *steps,
                                   CUtensorMapInterleave interleave,
                                   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                   CUtensorMapFloatOOBfill fill)
{
    using namespace emulate;
    const bool is_tf32 = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    const bool is_half = type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ||
                         type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    const int bytes = is_half ? 2 : 4;
    const bool is_known =
        (is_half || is_tf32 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32) && rank == 2 &&
        interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
        swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
        fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && steps[0] == 1 && steps[1] == 1;

    if (!is_known || (uintptr_t)data % 16 != 0 || strides[0] % 16 != 0 || sizes[0] == 0 ||
        sizes[1] == 0 || sizes[0] > 1ull << 32 || sizes[1] > 1ull << 32 ||
        box[0] * (cuuint32_t)bytes != SWIZZLED || box[1] == 0 || box[1] > 256)
        return CUDA_ERROR_INVALID_VALUE;
    const box_map made = { MARK,
                           static_cast<const unsigned char *>(data),
                           (int64_t)sizes[0],
                           (int64_t)sizes[1],
                           (int64_t)strides[0],
                           (int)box[0],
                           (int)box[1],
                           bytes,
                           is_tf32 };

    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}
