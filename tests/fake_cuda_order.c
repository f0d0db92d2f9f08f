/* The simulated CUDA: work that runs in any order that streams and events allow. */
#include "fake_cuda_parts.h"

#include <stdlib.h>
#include <string.h>

typedef enum work_kind { COPY, FILL, RECORD, WAIT } work_kind;

typedef struct work {
    work_kind kind;
    const fake_stream *stream;
    void *to;
    const void *from;
    size_t bytes;
    int byte;
    long awaited; /* of WAIT: the record, by its place; < 0: none */
    bool done;
} work;

enum { MAX_ORDERED = 8 };

static struct {
    bool on;
    uint64_t random;
    work *list; /* in the order of submission */
    long n, capacity;
    const fake_stream *stream[MAX_ORDERED]; /* seen so far */
    unsigned zeal[MAX_ORDERED];             /* of 4: how soon its work is done */
    int n_streams;
} order;

static unsigned next_random(unsigned n)
{
    uint64_t x = order.random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((x ^ (x >> 31)) >> 33) % n;
}

static void execute(work *what)
{
    if (what->kind == COPY)
        memmove(what->to, what->from, what->bytes);
    else if (what->kind == FILL)
        memset(what->to, what->byte, what->bytes);
    what->done = true;
}

/* Everything on the stream up to and with place `last`, and what that waits for. */
static void force(const fake_stream *stream, long last)
{
    for (long i = 0; i <= last; i++) {
        work *const what = &order.list[i];

        if (what->done || what->stream != stream)
            continue;
        if (what->kind == WAIT && what->awaited >= 0)
            force(order.list[what->awaited].stream, what->awaited);
        execute(&order.list[i]);
    }
}

/* The next work of a stream, if nothing holds it back; NULL: there is none. */
static work *runnable(const fake_stream *stream)
{
    for (long i = 0; i < order.n; i++) {
        work *const what = &order.list[i];

        if (what->done || what->stream != stream)
            continue;
        return what->kind == WAIT && what->awaited >= 0 && !order.list[what->awaited].done
                   ? NULL
                   : what;
    }
    return NULL;
}

/* Some of what may run does. */
static void drift(void)
{
    for (int round = 0; round < 8; round++) {
        const unsigned s = next_random((unsigned)order.n_streams);
        work *const what =
            next_random(4) < order.zeal[s] ? runnable(order.stream[s]) : NULL;

        if (what)
            execute(what);
    }
}

static void submit(work what)
{
    int s = 0;

    while (s < order.n_streams && order.stream[s] != what.stream)
        s++;
    if (s == order.n_streams) {
        if (s == MAX_ORDERED)
            abort();
        order.stream[s] = what.stream;
        order.zeal[s] = next_random(5);
        order.n_streams++;
    }
    if (order.n == order.capacity) {
        order.capacity = order.capacity ? 2 * order.capacity : 256;
        order.list = realloc(order.list, (size_t)order.capacity * sizeof *order.list);
        if (!order.list)
            abort();
    }
    order.list[order.n++] = what;
    drift();
}

void fake_order_begin(uint64_t seed)
{
    order.on = true;
    order.random = seed;
    order.n = 0;
    order.n_streams = 0;
}

void fake_order_end(void)
{
    fake_order_finish(NULL);
    order.on = false;
    free(order.list);
    order.list = NULL;
    order.capacity = 0;
    order.n = 0;
}

bool fake_order_runs_alone(const void *stream)
{
    work *what;

    while ((what = runnable(stream)))
        execute(what);
    for (long i = 0; i < order.n; i++)
        if (order.list[i].stream == stream && !order.list[i].done)
            return false;
    return true;
}

void fake_order_copy(fake_stream *stream, void *to, const void *from, size_t bytes)
{
    if (order.on)
        submit((work){
            .kind = COPY, .stream = stream, .to = to, .from = from, .bytes = bytes });
    else
        memmove(to, from, bytes);
}

void fake_order_fill(fake_stream *stream, void *to, int byte, size_t bytes)
{
    if (order.on)
        submit((work){
            .kind = FILL, .stream = stream, .to = to, .byte = byte, .bytes = bytes });
    else
        memset(to, byte, bytes);
}

void fake_order_record(fake_stream *stream, fake_event *event)
{
    event->record = -1;
    if (!order.on)
        return;
    event->record = order.n;
    submit((work){ .kind = RECORD, .stream = stream });
}

void fake_order_wait(fake_stream *stream, const fake_event *event)
{
    if (order.on && event->record < order.n)
        submit((work){ .kind = WAIT, .stream = stream, .awaited = event->record });
}

void fake_order_finish(const fake_stream *stream)
{
    for (int s = 0; order.on && s < order.n_streams; s++)
        if (!stream || order.stream[s] == stream)
            force(order.stream[s], order.n - 1);
}

void fake_order_finish_event(const fake_event *event)
{
    if (order.on && event->record >= 0 && event->record < order.n)
        force(order.list[event->record].stream, event->record);
}

bool fake_order_has_passed(const fake_event *event)
{
    return !order.on || event->record < 0 || event->record >= order.n ||
           order.list[event->record].done;
}
