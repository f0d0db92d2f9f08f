/* Initial values: counter-based, so that each depends on seed, tensor name and index
 * alone.
 *
 * The key of Philox is the seed, its counter is the element's index and a hash of the
 * tensor's name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "name_map.h"
#include "philox.h"

/* 53 bits to [0, 1). */
static double unit(uint32_t high, uint32_t low)
{
    const uint64_t bits = ((uint64_t)high << 32 | low) >> 11;

    return (double)bits * 0x1p-53;
}

/* Box-Muller, the cosine alone. */
static double normal(const uint32_t word[4])
{
    const double two_pi = 6.283185307179586476925286766559;
    const double radius = sqrt(-2 * log(1 - unit(word[0], word[1])));

    return radius * cos(two_pi * unit(word[2], word[3]));
}

/* What the values of an element are drawn from. */
typedef struct draw {
    bool is_normal;
    double a, b; /* mean and deviation, or the ends of the range */
} draw;

/* Sizes in and out of a layer whose weight this is: as the resolver found them, else from
 * a shape [in, out]. */
static bool fans(const gx_value *value, double *in, double *out)
{
    *in = (double)value->fan_in;
    *out = (double)value->fan_out;
    if (value->rank >= 2 && value->fan_in == 0) {
        *out = (double)value->dim[value->rank - 1];
        *in = 1;
        for (int i = 0; i < value->rank - 1; i++)
            *in *= (double)value->dim[i];
    }
    if (value->init.kind == GX_INIT_TORCH_LINEAR && value->init.a > 0)
        *in = value->init.a;
    return *in > 0;
}

static gx_status choose_draw(const gx_value *value, draw *d, gx_error *err)
{
    const gx_init_kind kind = value->init.kind;
    double in, out, bound;

    d->is_normal = kind == GX_INIT_NORMAL || kind == GX_INIT_HE_NORMAL ||
                   kind == GX_INIT_XAVIER_NORMAL;
    d->a = value->init.a;
    d->b = value->init.b;
    if (kind == GX_INIT_NORMAL || kind == GX_INIT_UNIFORM)
        return GX_OK;
    if (!fans(value, &in, &out))
        return GX_FAIL(
            err, GX_ERR_MODEL,
            "tensor \"%s\": its initialiser needs the size of the layer's input, "
            "which no gemm tells; write the range out",
            value->name);
    if (kind == GX_INIT_HE_NORMAL)
        bound = sqrt(2 / in);
    else if (kind == GX_INIT_HE_UNIFORM)
        bound = sqrt(6 / in);
    else if (kind == GX_INIT_XAVIER_NORMAL)
        bound = sqrt(2 / (in + out));
    else if (kind == GX_INIT_XAVIER_UNIFORM)
        bound = sqrt(6 / (in + out));
    else
        bound = 1 / sqrt(in);
    d->a = d->is_normal ? 0 : -bound;
    d->b = bound;
    return GX_OK;
}

static gx_status fill_random(const gx_value *value, uint64_t seed, double *out, int64_t n,
                             gx_error *err)
{
    const uint64_t hash = gx_hash_text(value->name);
    draw d;

    GX_TRY(choose_draw(value, &d, err));
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];

        gx_philox(seed, (uint64_t)i, hash, word);
        out[i] = d.is_normal ? d.a + d.b * normal(word)
                             : d.a + (d.b - d.a) * unit(word[0], word[1]);
    }
    return GX_OK;
}

static void fill_integers(const gx_value *value, uint64_t seed, double *out, int64_t n)
{
    const uint64_t range = (uint64_t)(value->init.b - value->init.a);
    const uint64_t hash = gx_hash_text(value->name);

    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];

        gx_philox(seed, (uint64_t)i, hash, word);
        out[i] = value->init.a + (double)((range * word[0]) >> 32);
    }
}

static gx_status fill_file(const gx_value *value, double *out, int64_t n, gx_error *err)
{
    gx_tensor wanted = { .rank = value->rank };
    gx_tensor file;
    char is[120], should[120];

    memcpy(wanted.dim, value->dim, sizeof wanted.dim);
    GX_TRY(gx_npy_read(value->init.path, &file, err));
    if (!gx_same_shape(&file, &wanted) || gx_count(&file) != n) {
        free(file.data);
        return GX_FAIL(err, GX_ERR_SHAPE, "%s: shape %s, but tensor \"%s\" has %s",
                       value->init.path,
                       gx_shape_text(file.rank, file.dim, is, sizeof is), value->name,
                       gx_shape_text(value->rank, value->dim, should, sizeof should));
    }
    for (int64_t i = 0; i < n; i++) {
        if (file.dtype == GX_F64)
            out[i] = ((const double *)file.data)[i];
        else if (file.dtype == GX_I32)
            out[i] = (double)((const int32_t *)file.data)[i];
        else
            out[i] = (double)((const float *)file.data)[i];
    }
    free(file.data);
    return GX_OK;
}

const gx_value *gx_init_source(const gx_graph *graph, const gx_value *value)
{
    const int32_t id = value->has_init && value->init.kind == GX_INIT_PARAM
                           ? gx_graph_value_id(graph, value->init.path)
                           : -1;

    return id >= 0 ? &graph->values[id] : value;
}

gx_status gx_init_fill(const gx_value *value, uint64_t seed, double *out, int64_t n,
                       gx_error *err)
{
    double constant = 0;

    if (n == 0)
        return GX_OK;
    if (value->has_init) {
        switch (value->init.kind) {
        case GX_INIT_ZEROS:
            break;
        case GX_INIT_ONES:
            constant = 1;
            break;
        case GX_INIT_CONSTANT:
            constant = value->init.a;
            break;
        case GX_INIT_INTEGERS:
            fill_integers(value, seed, out, n);
            return GX_OK;
        case GX_INIT_FILE:
            return fill_file(value, out, n, err);
        case GX_INIT_PARAM: /* gx_init_source leads to another one */
            return GX_FAIL(err, GX_ERR_MODEL,
                           "tensor \"%s\" starts as parameter \"%s\" does, which is not "
                           "there",
                           value->name, value->init.path);
        default:
            return fill_random(value, seed, out, n, err);
        }
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = constant;
    return GX_OK;
}
