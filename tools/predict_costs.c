/* The costs of a prediction: what a file says of a card, what was measured here on one,
 * or constants. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nsys_predict.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *name;
    size_t at;
} fields[] = {
#define FIELD(name)                             \
    {                                           \
#name, offsetof(gx_predict_costs, name) \
    }
    FIELD(node_ns),   FIELD(programmatic_ns), FIELD(trace_ns),  FIELD(trace_error_ns),
    FIELD(copy_ns),   FIELD(copy_error_ns),   FIELD(join_ns),   FIELD(join_error_ns),
    FIELD(step_ns),   FIELD(step_error_ns),   FIELD(host_ns),   FIELD(build_node_ns),
    FIELD(engine_ns), FIELD(engine_error_ns), FIELD(beside_ns), FIELD(beside_error_ns),
    FIELD(n_sm),
#undef FIELD
};

/* Which costs a file has told so far: the fields, and the card. */
typedef struct told {
    bool field[N(fields)];
    bool card;
} told;

static gx_status tell(const char *path, int line, const char *name, bool *is_told,
                      gx_error *err)
{
    if (*is_told)
        return GX_FAIL(err, GX_ERR_DATA, "%s:%d: %s is given twice", path, line, name);
    *is_told = true;
    return GX_OK;
}

static gx_status take_number(const char *path, int line, const char *name,
                             const char *value, gx_predict_costs *costs, told *so_far,
                             gx_error *err)
{
    char *end;
    const double number = strtod(value, &end);
    size_t i = 0;

    while (i < N(fields) && strcmp(fields[i].name, name) != 0)
        i++;
    if (i == N(fields))
        return GX_FAIL(
            err, GX_ERR_DATA,
            "%s:%d: no cost is named '%s'; there are card, node_ns, "
            "programmatic_ns, trace_ns, copy_ns, engine_ns, beside_ns, join_ns, step_ns, "
            "each of the last six with an _error_ns, host_ns, build_node_ns and n_sm",
            path, line, name);
    if (end == value || *end || !isfinite(number) || number < 0.0)
        return GX_FAIL(err, GX_ERR_DATA,
                       "%s:%d: '%s' is no value of %s: expected a number that is not "
                       "negative",
                       path, line, value, name);
    GX_TRY(tell(path, line, name, &so_far->field[i], err));
    *(double *)((char *)costs + fields[i].at) = number;
    return costs->n_sm > 0.0 ? GX_OK
                             : GX_FAIL(err, GX_ERR_DATA,
                                       "%s:%d: n_sm: expected at least 1", path, line);
}

/* One line, which is cut up. */
static gx_status take_line(const char *path, int line, char *text,
                           gx_predict_costs *costs, told *so_far, gx_error *err)
{
    char *name, *value, *end;

    text[strcspn(text, "#\r\n")] = '\0';
    name = text + strspn(text, " \t");
    for (end = name + strlen(name); end > name && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    if (!*name)
        return GX_OK;
    value = name + strcspn(name, " \t");
    if (*value)
        *value++ = '\0';
    value += strspn(value, " \t");
    if (strcmp(name, "card") != 0)
        return take_number(path, line, name, value, costs, so_far, err);
    GX_TRY(tell(path, line, name, &so_far->card, err));
    snprintf(costs->card, sizeof costs->card, "%s", value);
    return GX_OK;
}

gx_status gx_predict_costs_read(const char *path, gx_predict_costs *costs, gx_error *err)
{
    char text[512];
    told so_far = { .card = false };
    gx_status st = GX_OK;
    FILE *file;

    *costs = gx_predict_costs_default();
    if (!path)
        return GX_OK;
    file = fopen(path, "r");
    if (!file)
        return GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    costs->card[0] = '\0';
    for (int line = 1; st == GX_OK && fgets(text, sizeof text, file); line++)
        st = take_line(path, line, text, costs, &so_far, err);
    if (st == GX_OK && ferror(file))
        st = GX_FAIL_NATIVE(err, GX_ERR_READ, errno, "%s: %s", path, strerror(errno));
    fclose(file);
    return st;
}

gx_status gx_nsys_costs(const char *path, gx_nsys_predicted *predicted, gx_error *err)
{
    *predicted = (gx_nsys_predicted){ .from = path ? GX_COSTS_FILE : GX_COSTS_DEFAULT,
                                      .costs_path = path };
    return gx_predict_costs_read(path, &predicted->costs, err);
}

static bool has_card(const gx_trace_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_gpus; i++)
        if (strcmp(gx_trace_text_at(file->trace, file->gpus[i].name), name) == 0)
            return true;
    return false;
}

/* What was kept for a card of this machine that has the name of the trace's. No card and
 * nothing kept are no errors: the constants are good, and said. */
static void look_for_kept(const gx_trace_file *file, gx_nsys_predicted *predicted)
{
    gx_device_info info;
    gx_ceilings ceilings;
    int n = 0;

    if (file->n_gpus == 0 || gx_device_count(&n, NULL) != GX_OK)
        return;
    for (int i = 0; i < n; i++)
        if (gx_device_info_get(i, &info, NULL) == GX_OK && has_card(file, info.name) &&
            gx_ceilings_load(&info, NULL, &ceilings, NULL) == GX_OK) {
            predicted->costs = gx_predict_costs_of(&ceilings);
            predicted->costs.n_sm = info.n_sm > 0 ? info.n_sm : predicted->costs.n_sm;
            predicted->from = GX_COSTS_KEPT;
            snprintf(predicted->date, sizeof predicted->date, "%s", ceilings.date);
            return;
        }
}

gx_status gx_nsys_predict(const gx_trace_file *file, const gx_trace_options *options,
                          gx_nsys_predicted *predicted, gx_error *err)
{
    if (predicted->from == GX_COSTS_DEFAULT)
        look_for_kept(file, predicted);
    return gx_prediction_create(file->trace, options, &predicted->costs,
                                &predicted->prediction, err);
}
