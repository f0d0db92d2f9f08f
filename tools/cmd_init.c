/* gexec init: a model to start from, with data that it can learn. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "figures.h"

enum { ARMS = 3, ROWS = 1500, HELD_EVERY = 5, PATH_SIZE = 4096 };

static const char *const file_names[] = { "model.yaml", "x.npy", "y.npy", "split.npy" };
enum { N_FILES = sizeof file_names / sizeof file_names[0] };

static const char model_text[] =
    "# Three interleaved spirals, told apart by a net of two hidden layers.\n"
    "#   gexec run model.yaml          trains it\n"
    "#   gexec compare model.yaml      what one CUDA graph saves, on a GPU\n"
    "#   gexec ops                     what may stand under `ops`\n"
    "gexec: 1\n"
    "name: spirals\n"
    "dims: {batch: 50, hidden: 64}\n"
    "precision: f32                   # f32 | tf32 | bf16 | f16\n"
    "data:\n"
    "  x: x.npy                       # rows are samples\n"
    "  y: y.npy\n"
    "  split: split.npy               # 0 train, 1 held out\n"
    "  shuffle: true\n"
    "  epochs: 60\n"
    "inputs:\n"
    "  x: {shape: [batch, 2]}\n"
    "  y: {shape: [batch], dtype: i32}\n"
    "params:\n"
    "  w1: {shape: [2, hidden], init: he_normal}\n"
    "  b1: {shape: [hidden]}\n"
    "  w2: {shape: [hidden, hidden], init: he_normal}\n"
    "  b2: {shape: [hidden]}\n"
    "  w3: {shape: [hidden, 3], init: he_normal}\n"
    "  b3: {shape: [3]}\n"
    "ops:\n"
    "  - {op: gemm, name: fc1, a: x, b: w1, epilogue: {bias: b1, act: relu}, out: h1}\n"
    "  - {op: gemm, name: fc2, a: h1, b: w2, epilogue: {bias: b2, act: relu}, out: h2}\n"
    "  - {op: gemm, name: fc3, a: h2, b: w3, epilogue: {bias: b3}, out: logits}\n"
    "  - {op: softmax_cross_entropy, name: loss, logits: logits, labels: y}\n"
    "backward: loss\n"
    "optimizer: {adamw: {lr: 5.0e-3, weight_decay: 0.01}}\n"
    "metrics: {accuracy: {logits: logits, labels: y}}\n"
    "outputs: [loss]\n";

/* --- data --- */

static double uniform(uint64_t *random)
{
    return (double)(gx_random_next(random) >> 11) * 0x1p-53;
}

/* Row i lies on arm i % ARMS: one and a half turns, with a little noise. */
static void fill(float *x, int32_t *y, int32_t *split)
{
    const double turn = 6.283185307179586;
    uint64_t random = 1;

    for (int i = 0; i < ROWS; i++) {
        const int arm = i % ARMS;
        const double along = uniform(&random);
        const double radius = 0.1 + 0.9 * along;
        const double angle = turn * (1.25 * along + (double)arm / ARMS) +
                             0.12 * (uniform(&random) + uniform(&random) - 1);

        x[2 * i] = (float)(radius * cos(angle));
        x[2 * i + 1] = (float)(radius * sin(angle));
        y[i] = arm;
        split[i] = i / ARMS % HELD_EVERY == 0;
    }
}

static gx_status write_data(char paths[N_FILES][PATH_SIZE], gx_error *err)
{
    float *x = malloc(2 * ROWS * sizeof *x);
    int32_t *y = malloc(ROWS * sizeof *y);
    int32_t *split = malloc(ROWS * sizeof *split);
    gx_status st = GX_OK;

    if (!x || !y || !split) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        goto done;
    }
    fill(x, y, split);
    st = gx_npy_write(
        paths[1],
        &(gx_tensor){ .dtype = GX_F32, .rank = 2, .dim = { ROWS, 2 }, .data = x }, err);
    if (st == GX_OK)
        st = gx_npy_write(
            paths[2],
            &(gx_tensor){ .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = y }, err);
    if (st == GX_OK)
        st = gx_npy_write(
            paths[3],
            &(gx_tensor){ .dtype = GX_I32, .rank = 1, .dim = { ROWS }, .data = split },
            err);
done:
    free(x);
    free(y);
    free(split);
    return st;
}

/* --- files --- */

/* The model comes last: where it stands, its data do too. */
static gx_status write_model(const char *path, gx_error *err)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    const size_t length = sizeof model_text - 1;
    ssize_t written;

    if (file < 0)
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", path, strerror(errno));
    written = write(file, model_text, length);
    if (close(file) == 0 && written == (ssize_t)length)
        return GX_OK;
    (void)GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", path, strerror(errno));
    unlink(path);
    return GX_ERR_WRITE;
}

static gx_status make_paths(const char *folder, char paths[N_FILES][PATH_SIZE],
                            gx_error *err)
{
    for (int i = 0; i < N_FILES; i++) {
        const int length = snprintf(paths[i], PATH_SIZE, "%s/%s", folder, file_names[i]);

        if (length < 0 || length >= PATH_SIZE)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "the name of the folder is too long");
        if (access(paths[i], F_OK) == 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT, "%s exists; nothing was written",
                           paths[i]);
    }
    return GX_OK;
}

static gx_status init(const char *folder, gx_error *err)
{
    static char paths[N_FILES][PATH_SIZE]; /* too large for the stack */
    const bool made = mkdir(folder, 0777) == 0;
    gx_status st;

    if (!made && errno != EEXIST)
        return GX_FAIL_NATIVE(err, GX_ERR_WRITE, errno, "%s: %s", folder,
                              strerror(errno));
    GX_TRY(make_paths(folder, paths, err));
    st = write_data(paths, err);
    if (st == GX_OK)
        st = write_model(paths[0], err);
    if (st == GX_OK)
        return GX_OK;
    for (int i = 1; i < N_FILES; i++)
        unlink(paths[i]);
    if (made)
        rmdir(folder);
    return st;
}

int gx_cmd_init(const gx_args *args)
{
    const char *const folder = args->n_names ? args->names[0] : ".";
    gx_error err = { 0 };

    if (init(folder, &err) != GX_OK)
        return gx_say_error(args, &err);
    for (int i = 0; i < N_FILES; i++)
        printf("%s/%s\n", folder, file_names[i]);
    gx_say(args, "now: gexec run %s/model.yaml", folder);
    return GX_EXIT_OK;
}
