/* A card's measured ceilings as text and as JSON. */
#include "ceilings_report.h"

#include "text_format.h"
#include "text_table.h"

static gx_words rate_text(double rate, const char *unit)
{
    const gx_words unknown = { "n/a" };

    return rate > 0 ? gx_words_scaled(rate, unit) : unknown;
}

static void titles(gx_text_table *table, const char *left, const char *right)
{
    gx_text_table_cell(table, "%s", left);
    gx_text_table_cell(table, "%s", right);
    gx_text_table_rule(table);
}

static void print_products(const gx_ceilings *ceilings, FILE *out)
{
    gx_text_table *table = gx_text_table_create("lr");

    titles(table, "products of", "best rate");
    for (int i = 0; i < GX_RATES; i++) {
        gx_text_table_cell(table, "%s", gx_rate_name((gx_rate)i));
        gx_text_table_cell(table, "%s",
                           rate_text(ceilings->flops_per_s[i], "FLOP/s").text);
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

static void print_copies(const gx_ceilings *ceilings, FILE *out)
{
    gx_text_table *table = gx_text_table_create("rr");

    titles(table, "copies within", "read and written");
    for (size_t i = 0; i < ceilings->n_copy; i++) {
        gx_text_table_cell(table, "%s",
                           gx_words_bytes((double)ceilings->copy[i].bytes).text);
        gx_text_table_cell(table, "%s",
                           rate_text(ceilings->copy[i].bytes_per_s, "B/s").text);
    }
    if (ceilings->n_copy == 0) {
        gx_text_table_cell(table, "n/a");
        gx_text_table_cell(table, "n/a");
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

static void print_costs(const gx_ceilings *ceilings, FILE *out)
{
    const struct {
        const char *what;
        double seconds;
    } rows[] = {
        { "a dependent node of a graph, empty", ceilings->node_s },
        { "the same behind a programmatic edge", ceilings->programmatic_node_s },
        { "a copy of 4 bytes from pinned memory", ceilings->copy_node_s },
        { "a larger copy, beside its bytes", ceilings->copy_engine_s },
        { "a node more, beside another chain", ceilings->beside_s },
        { "parting into two, or joining", ceilings->join_s },
        { "a replay beside its nodes, back to back", ceilings->step_s },
        { "an eager launch, of the host", ceilings->launch_s },
        { "a replay of one node, of the host", ceilings->graph_host_s },
    };
    gx_text_table *table = gx_text_table_create("lr");

    titles(table, "cost of", "time");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gx_text_table_cell(table, "%s", rows[i].what);
        gx_text_table_cell(table, "%s", gx_words_seconds(rows[i].seconds).text);
    }
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
}

void gx_ceilings_print(const gx_ceilings *ceilings, FILE *out)
{
    fprintf(out, "ceilings of %s, measured %s (driver %s, toolkit %s)\n", ceilings->card,
            ceilings->date, gx_words_cuda_version(ceilings->driver_version).text,
            gx_words_cuda_version(ceilings->runtime_version).text);
    print_products(ceilings, out);
    print_copies(ceilings, out);
    print_costs(ceilings, out);
}

void gx_ceilings_json(gx_json *json, const char *key, const gx_ceilings *ceilings)
{
    gx_json_object(json, key);
    gx_json_text(json, "card", ceilings->card);
    gx_json_text(json, "driver_cuda",
                 gx_words_cuda_version(ceilings->driver_version).text);
    gx_json_text(json, "toolkit_cuda",
                 gx_words_cuda_version(ceilings->runtime_version).text);
    gx_json_text(json, "date", ceilings->date);
    gx_json_object(json, "flops_per_s");
    for (int i = 0; i < GX_RATES; i++)
        gx_json_figure(json, gx_rate_name((gx_rate)i), ceilings->flops_per_s[i]);
    gx_json_end(json);
    gx_json_array(json, "copy");
    for (size_t i = 0; i < ceilings->n_copy; i++) {
        gx_json_object(json, NULL);
        gx_json_integer(json, "bytes", ceilings->copy[i].bytes);
        gx_json_figure(json, "bytes_per_s", ceilings->copy[i].bytes_per_s);
        gx_json_end(json);
    }
    gx_json_end(json);
    gx_json_figure(json, "node_s", ceilings->node_s);
    gx_json_figure(json, "programmatic_node_s", ceilings->programmatic_node_s);
    gx_json_figure(json, "copy_node_s", ceilings->copy_node_s);
    gx_json_figure(json, "copy_engine_s", ceilings->copy_engine_s);
    gx_json_figure(json, "beside_s", ceilings->beside_s);
    gx_json_figure(json, "join_s", ceilings->join_s);
    gx_json_figure(json, "step_s", ceilings->step_s);
    gx_json_figure(json, "launch_s", ceilings->launch_s);
    gx_json_figure(json, "graph_host_s", ceilings->graph_host_s);
    gx_json_end(json);
}
