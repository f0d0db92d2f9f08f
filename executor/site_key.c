/* What a group of nodes is to an alternative, as text and as a hash. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

/* Two sums after the manner of FNV-1a with multipliers of their own: together 128 bits.
 */
typedef struct key_writer {
    uint64_t hash[2];
    char *text;
    size_t used, size;
    int32_t *ids; /* values met so far, by their local number */
    int32_t n_ids, most_ids;
} key_writer;

static void add_hash(key_writer *w, const void *bytes, size_t n)
{
    static const uint64_t multiplier[2] = { UINT64_C(0x100000001b3),
                                            UINT64_C(0x9e3779b97f4a7c15) };
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++)
            w->hash[k] = (w->hash[k] ^ byte[i]) * multiplier[k];
    }
}

static void add_number(key_writer *w, int64_t number)
{
    add_hash(w, &number, sizeof number);
}

static void add_text(key_writer *w, const char *text)
{
    const size_t length = strlen(text);

    if (w->used + length >= w->size) {
        w->size = w->used; /* cut here, and nothing behind it either */
        return;
    }
    memcpy(w->text + w->used, text, length + 1);
    w->used += length;
}

/* A group of several kinds of ops has at most so many nodes, or is refused: a pattern
 * that stands GX_MAX_REPEATS times, and as many updates. */
enum { SURELY_MIXED = 16, MAX_MIXED = 4 * GX_MAX_REPEATS };

/* Those of a pattern fit. A long run of ops of one kind passes its bound, and what those
 * share they share from the first one on. */
enum { MAX_LOCAL_IDS = 4 * MAX_MIXED, MAX_RUN_IDS = 64 };

/* Values are numbered as they are met, up to the bound. */
static int64_t local_number(key_writer *w, int32_t id)
{
    for (int32_t i = 0; i < w->n_ids; i++) {
        if (w->ids[i] == id)
            return i;
    }
    if (w->n_ids == w->most_ids)
        return -1;
    w->ids[w->n_ids] = id;
    return w->n_ids++;
}

static void add_operand(key_writer *w, const gx_graph *graph, int32_t id, bool elidable)
{
    char text[64], shape[48];

    if (id < 0) {
        add_number(w, -1);
        add_text(w, " -");
        return;
    }
    const gx_value *value = &graph->values[id];

    add_number(w, value->rank);
    add_number(w, value->dtype);
    for (int i = 0; i < value->rank; i++)
        add_number(w, value->dim[i]);
    add_number(w, local_number(w, id));
    add_number(w, elidable);
    gx_shape_text(value->rank, value->dim, shape, sizeof shape);
    snprintf(text, sizeof text, " %s%s%s", gx_dtype_name(value->dtype), shape,
             elidable ? "~" : "");
    add_text(w, text);
}

static void add_attr(key_writer *w, const gx_attr *attr)
{
    add_number(w, attr->present);
    add_number(w, attr->i);
    add_hash(w, &attr->r, sizeof attr->r);
    if (attr->list)
        add_hash(w, attr->list, (size_t)attr->i * sizeof *attr->list);
}

static void add_node(key_writer *w, const gx_graph *graph, int32_t index,
                     const bool *elided)
{
    const gx_node *node = &graph->nodes[index];
    int n_args = 0, n_attrs = 0;

    add_hash(w, node->op->name, strlen(node->op->name) + 1);
    add_text(w, node->op->name);
    for (const gx_field *field = node->op->fields; field->name; field++) {
        if (field->kind == GX_FIELD_IN || field->kind == GX_FIELD_INOUT ||
            field->kind == GX_FIELD_OUT) {
            add_operand(w, graph, node->arg[n_args], elided && elided[n_args]);
            n_args++;
        } else {
            /* Which random sequence an op draws says nothing of its cost. */
            if (strcmp(field->name, "stream") != 0)
                add_attr(w, &node->attr[n_attrs]);
            n_attrs++;
        }
    }
}

void gx_site_key(const gx_graph *graph, int32_t first, int32_t n, char key[GX_KEY_SIZE],
                 uint64_t hash[2])
{
    enum { HASH_TEXT = 36 };
    const bool is_mixed =
        n <= SURELY_MIXED ||
        (n <= MAX_MIXED && graph->nodes[first].op != graph->nodes[first + n - 1].op);
    bool elided[MAX_MIXED * GX_MAX_ARGS];
    int32_t ids[MAX_LOCAL_IDS];
    key_writer w = {
        .hash = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4) },
        .text = key,
        .size = GX_KEY_SIZE - HASH_TEXT,
        .ids = ids,
        .most_ids = is_mixed ? MAX_LOCAL_IDS : MAX_RUN_IDS,
    };

    key[0] = 0;
    add_number(&w, graph->precision);
    add_text(&w, gx_precision_name(graph->precision));
    add_text(&w, ": ");
    if (is_mixed)
        gx_match_elided(graph, first, n, elided);
    for (int32_t i = 0; i < n; i++) {
        if (i > 0)
            add_text(&w, " + ");
        add_node(&w, graph, first + i, is_mixed ? elided + i * GX_MAX_ARGS : NULL);
    }
    snprintf(key + w.used, GX_KEY_SIZE - w.used, " #%016" PRIx64 "%016" PRIx64, w.hash[0],
             w.hash[1]);
    hash[0] = w.hash[0];
    hash[1] = w.hash[1];
}
