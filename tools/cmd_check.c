/* gexec check: against the double-precision reference and finite differences. */
#include <stdlib.h>

#include "check.h"
#include "interrupt.h"
#include "json_out.h"
#include "remarks.h"
#include "run_report.h"
#include "text_format.h"
#include "text_table.h"

enum { MOST_ROWS = 40 };

/* False where no element of the parameter could be held against a difference. */
static bool is_judged(const gx_gradient_row *row)
{
    return row->n_elements > 0;
}

/* Comparisons that were made whole. */
static size_t count_done(const gx_check *check)
{
    size_t n = check->n_rows;

    for (size_t i = 0; i < check->n_gradients; i++)
        n += check->gradients[i].complete && is_judged(&check->gradients[i]);
    return n;
}

static bool has_passed(const gx_check *check)
{
    bool passed = true;

    for (size_t i = 0; i < check->n_rows; i++)
        passed = passed && check->rows[i].ok;
    for (size_t i = 0; i < check->n_gradients; i++)
        passed = passed && check->gradients[i].ok;
    return passed;
}

static void free_check(gx_check *check)
{
    gx_session_close(&check->device);
    gx_session_close(&check->rounded);
    gx_session_close(&check->exact);
    free(check->rows);
    free(check->gradients);
    free(check->rounding);
}

/* --- text --- */

static double share(const gx_check_row *row)
{
    return row->allowed > 0 ? row->error / row->allowed : row->error;
}

static void add_row(gx_text_table *table, const gx_check_row *row)
{
    gx_text_table_cell(table, "%s", row->program);
    gx_text_table_cell(table, "%s", row->value.name);
    gx_text_table_cell(table, "%s", gx_words_shape(row->value.rank, row->value.dim).text);
    gx_text_table_cell(table, "%.2e",
                       gx_plain_nan(row->norm > 0 ? row->error / row->norm : row->error));
    gx_text_table_cell(
        table, "%.2e",
        gx_plain_nan(row->norm > 0 ? row->allowed / row->norm : row->allowed));
    gx_text_table_cell(table, "%s", row->position.text);
    gx_text_table_cell(table, "%.9g", gx_plain_nan(row->found));
    gx_text_table_cell(table, "%.9g", gx_plain_nan(row->expected));
    gx_text_table_cell(table, "%s",
                       !row->ok           ? "FAILED"
                       : row->by_rounding ? "ok, rounding"
                                          : "ok");
}

/* The row is among the `most` of the largest share, or failed, or all are wanted. */
static bool is_shown(const gx_check *check, size_t i)
{
    size_t n_larger = 0;

    if (check->args->verbose || check->n_rows <= MOST_ROWS || !check->rows[i].ok)
        return true;
    for (size_t j = 0; j < check->n_rows; j++)
        n_larger += share(&check->rows[j]) > share(&check->rows[i]);
    return n_larger < MOST_ROWS;
}

static bool rounding_decided(const gx_check *check)
{
    bool decided = false;

    for (size_t i = 0; i < check->n_rows; i++)
        decided = decided || check->rows[i].by_rounding;
    return decided;
}

static void print_rows(const gx_check *check, FILE *out)
{
    static const char *const titles[] = { "program", "tensor",   "shape",
                                          "error",   "allowed",  "worst at",
                                          "found",   "expected", "" };
    gx_text_table *table = gx_text_table_create("lllrrlrrl");
    size_t n_shown = 0;

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        gx_text_table_cell(table, "%s", titles[i]);
    gx_text_table_rule(table);
    for (size_t i = 0; i < check->n_rows; i++)
        if (is_shown(check, i)) {
            add_row(table, &check->rows[i]);
            n_shown++;
        }
    fputs(
        "One step against exact doubles (error: root of the sum of squares, as a share "
        "of the\nreference's; allowed: a share by type, and for a parameter twice "
        "the rate for the\nfew elements whose gradient is so near 0 that rounding turns "
        "its sign)\n",
        out);
    gx_text_table_print(table, "  ", out);
    if (n_shown < check->n_rows)
        fprintf(out, "  %zu more are nearer; -v shows all\n", check->n_rows - n_shown);
    gx_text_table_free(table);
    if (rounding_decided(check))
        fputs(
            "  rounding: terms cancel, and what is left is rounding; allowed besides is "
            "what it\n  was measured to make, with all parameters moved by their last "
            "bits\n",
            out);
}

/* Parameters whose gradients are not looked at, or are held to be 0, and why. */
static void print_unnamed(const gx_check *check, FILE *out)
{
    const gx_graph *const graph = check->exact.graph[GX_PROGRAM_TRAIN];

    for (size_t i = 0; i < check->n_gradients; i++)
        if (check->gradients[i].left_out && is_judged(&check->gradients[i]))
            fprintf(out, "  %s: no optimizer op updates it; the loss %s\n",
                    check->gradients[i].parameter.name,
                    check->gradients[i].ok ? "does not depend on it"
                                           : "depends on it, so a gradient is missing");
    for (size_t i = 0; i < gx_graph_value_count(graph); i++)
        if (gx_check_gradient_kind(check, i) == GX_GRADIENT_UNNAMED) {
            const char *const name = gx_graph_value(graph, i).name;

            fprintf(out, "  %s: there is no %s.grad, so its gradient is not checked\n",
                    name, name);
        }
}

/* Elements that no difference can tell of. */
static void print_bends(const gx_check *check, FILE *out)
{
    for (size_t i = 0; i < check->n_gradients; i++) {
        const gx_gradient_row *const row = &check->gradients[i];

        if (row->n_bends)
            fprintf(
                out,
                "  %s: %lld of %lld elements left out: the loss bends there (a relu at "
                "0, equal values\n  of a max), and has no derivative\n",
                row->parameter.name, (long long)row->n_bends,
                (long long)(row->n_bends + row->n_elements));
    }
}

static void print_gradient(const gx_gradient_row *row, gx_text_table *table)
{
    gx_text_table_cell(table, "%s", row->parameter.name);
    gx_text_table_cell(table, "%lld", (long long)row->n_elements);
    if (!is_judged(row)) {
        for (int i = 0; i < 4; i++)
            gx_text_table_cell(table, "n/a");
        return;
    }
    gx_text_table_cell(table, "%s", row->position.text);
    gx_text_table_cell(table, "%.9g", gx_plain_nan(row->gradient));
    gx_text_table_cell(table, "%.9g", gx_plain_nan(row->difference));
    gx_text_table_cell(table, "%s", row->ok ? "ok" : "FAILED");
}

static void print_gradients(const gx_check *check, FILE *out)
{
    static const char *const titles[] = { "parameter", "elements",   "worst at",
                                          "gradient",  "difference", "" };
    gx_text_table *table;

    if (check->n_gradients == 0) {
        if (gx_check_count_gradients(check) == 0)
            fputs("\nNo gradient is derived, so none is held against differences\n", out);
        else if (check->args->samples == 0)
            fputs("\nNo gradient is held against differences: --samples 0\n", out);
        else
            fputs("\nInterrupted before a gradient was held against differences\n", out);
        print_unnamed(check, out);
        return;
    }
    table = gx_text_table_create("lrlrrl");
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        gx_text_table_cell(table, "%s", titles[i]);
    gx_text_table_rule(table);
    for (size_t i = 0; i < check->n_gradients; i++)
        print_gradient(&check->gradients[i], table);
    fputs("\nGradients against central differences of the loss, in doubles\n", out);
    gx_text_table_print(table, "  ", out);
    gx_text_table_free(table);
    print_bends(check, out);
    print_unnamed(check, out);
}

/* The verdict over all comparisons that were made. */
static void print_headline(const gx_check *check, FILE *out)
{
    const size_t n = count_done(check);
    size_t n_failed = 0, n_unjudged = 0;

    for (size_t i = 0; i < check->n_rows; i++)
        n_failed += !check->rows[i].ok;
    for (size_t i = 0; i < check->n_gradients; i++)
        n_failed += !check->gradients[i].ok;
    for (size_t i = 0; i < check->n_gradients; i++)
        n_unjudged += !is_judged(&check->gradients[i]);
    if (check->interrupted)
        fprintf(out, "Interrupted after %zu of %zu comparisons; %zu out of tolerance", n,
                check->n_planned, n_failed);
    else if (n_failed)
        fprintf(out, "FAILED: %zu of %zu comparisons are out of tolerance", n_failed, n);
    else
        fprintf(out, "All %zu comparisons are within tolerance", n);
    if (n_unjudged)
        fprintf(out, "; n/a for %zu more, told below", n_unjudged);
}

static void print_check(const gx_check *check, FILE *out)
{
    print_headline(check, out);
    fprintf(out, " (%s, %s%s).\n\n", gx_graph_name(check->exact.graph[GX_PROGRAM_TRAIN]),
            gx_graph_precision(check->exact.graph[GX_PROGRAM_TRAIN]),
            check->device.state ? "" : "; the CPU alone: no GPU was used");
    print_rows(check, out);
    print_gradients(check, out);
}

/* --- JSON --- */

static void put_rows(gx_json *json, const gx_check *check)
{
    gx_json_array(json, "tensors");
    for (size_t i = 0; i < check->n_rows; i++) {
        const gx_check_row *const row = &check->rows[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "program", row->program);
        gx_json_text(json, "tensor", row->value.name);
        gx_json_real(json, "error_norm", row->error);
        gx_json_real(json, "allowed", row->allowed);
        gx_json_real(json, "reference_norm", row->norm);
        gx_json_text(json, "worst_at", row->position.text);
        gx_json_real(json, "found", row->found);
        gx_json_real(json, "expected", row->expected);
        gx_json_bool(json, "by_rounding", row->by_rounding);
        gx_json_bool(json, "ok", row->ok);
        gx_json_end(json);
    }
    gx_json_end(json);
}

/* Null where no element could be tried. */
static void put_gradient(gx_json *json, const gx_gradient_row *row)
{
    gx_json_integer(json, "elements", row->n_elements);
    gx_json_integer(json, "bends", row->n_bends);
    gx_json_text(json, "worst_at", is_judged(row) ? row->position.text : NULL);
    gx_json_real(json, "gradient", is_judged(row) ? row->gradient : NAN);
    gx_json_real(json, "difference_quotient", is_judged(row) ? row->difference : NAN);
    gx_json_real(json, "error", is_judged(row) ? row->error : NAN);
    gx_json_real(json, "allowed", is_judged(row) ? row->allowed : NAN);
    if (is_judged(row))
        gx_json_bool(json, "ok", row->ok);
    else
        gx_json_text(json, "ok", NULL);
}

static void put_gradients(gx_json *json, const gx_check *check)
{
    gx_json_array(json, "gradients");
    for (size_t i = 0; i < check->n_gradients; i++) {
        const gx_gradient_row *const row = &check->gradients[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "parameter", row->parameter.name);
        gx_json_bool(json, "updated", !row->left_out);
        put_gradient(json, row);
        gx_json_end(json);
    }
    gx_json_end(json);
}

static gx_status write_json(const gx_check *check, gx_error *err)
{
    const gx_session *const session =
        check->device.state ? &check->device : &check->rounded;
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_object(json, NULL);
    gx_json_text(json, "command", "check");
    gx_json_text(json, "model", gx_graph_name(check->exact.graph[GX_PROGRAM_TRAIN]));
    gx_json_text(json, "file", check->args->names[0]);
    gx_json_text(json, "precision",
                 gx_graph_precision(check->exact.graph[GX_PROGRAM_TRAIN]));
    if (check->interrupted) /* what was not compared may be wrong */
        gx_json_text(json, "passed", NULL);
    else
        gx_json_bool(json, "passed", has_passed(check));
    gx_json_integer(json, "comparisons", (int64_t)count_done(check));
    gx_json_integer(json, "comparisons_planned", (int64_t)check->n_planned);
    gx_json_bool(json, "interrupted", check->interrupted);
    gx_json_environment(json, "environment", session);
    gx_idle_flags_put(json, gx_idle_flags_of(session));
    put_rows(json, check);
    put_gradients(json, check);
    gx_json_end(json);
    st = gx_json_write(json, check->args->json, err);
    gx_json_free(json);
    return st;
}

int gx_cmd_check(const gx_args *args)
{
    gx_check check = { .args = args };
    gx_error err = { 0 };
    int exit_status;
    gx_mode mode;
    int device;
    gx_status st = gx_device_choose(args, false, &device, &mode, &err);

    gx_interrupt_watch();
    if (st == GX_OK)
        st = gx_check_programs(&check, device, &err);
    if (st == GX_OK)
        st = gx_check_gradients(&check, &err);
    check.interrupted = gx_interrupted() && count_done(&check) < check.n_planned;
    if (st == GX_OK && !gx_stdout_is_taken(args))
        print_check(&check, stdout);
    if (st == GX_OK && args->json)
        st = write_json(&check, &err);
    if (st != GX_OK)
        exit_status = gx_say_error(args, &err);
    else if (check.interrupted)
        exit_status = GX_EXIT_INTERRUPTED;
    else
        exit_status = has_passed(&check) ? GX_EXIT_OK : GX_EXIT_NO;
    free_check(&check);
    return exit_status;
}
