/* A model as the command line holds it: its programs, one state, and execs made when they
 * are first needed. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "destinations.h"
#include "figures.h"
#include "host_tensor.h"
#include "launches.h"
#include "out_folders.h"
#include "remarks.h"
#include "saved_state.h"

const char *const gx_cuda_variables[] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                          "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
                                          "NVIDIA_TF32_OVERRIDE", NULL };

const char *gx_mode_name(gx_mode mode)
{
    static const char *const names[] = {
        [GX_MODE_CPU] = "cpu", [GX_MODE_EAGER] = "eager", [GX_MODE_GRAPH] = "graph"
    };

    return names[mode];
}

/* --- loading --- */

/* Loads one graph of the model. `loud`: prints what is wrong with the file. */
static gx_status load_graph(const gx_session *session, gx_kind kind, int64_t rows,
                            bool loud, gx_graph **graph, gx_error *err)
{
    const gx_args *const args = session->args;
    gx_set *sets = malloc((args->sets.n + 1) * sizeof *sets);
    const char **keep = malloc((args->outs.n + 1) * sizeof *keep);
    gx_diagnostics *diagnostics = gx_diagnostics_create();
    size_t n_sets = 0;
    size_t n_keep = 0;
    gx_status st;

    *graph = NULL;
    if (!sets || !keep || !diagnostics) {
        st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        goto done;
    }
    st = gx_model_text_read(args->model, args->names[0], args->names[0], err);
    if (st != GX_OK)
        goto done;
    for (size_t i = 0; i < args->sets.n; i++)
        sets[n_sets++] = args->sets.items[i];
    /* What --out names must be readable; evaluation may lack it. */
    for (size_t i = 0; i < args->outs.n && kind == GX_TRAIN; i++)
        if (args->outs.items[i].name)
            keep[n_keep++] = args->outs.items[i].name;
    st = gx_graph_parse(
        args->model->bytes, args->model->length, args->names[0], args->model->folder,
        &(gx_load_options){ .kind = kind,
                            .sets = sets,
                            .n_sets = n_sets,
                            .keep = keep,
                            .n_keep = n_keep,
                            .keep_gradients = session->needs.keep_gradients,
                            .batch_rows = rows,
                            .stream =
                                session->streams ? GX_STREAM_ON : GX_STREAM_AS_WRITTEN },
        graph, diagnostics, err);
    if (st != GX_OK && loud && !session->needs.quiet &&
        gx_diagnostics_count(diagnostics) > 0) {
        char *text = gx_diagnostics_text(diagnostics);

        if (text) {
            fputs(text, stderr);
            err->message[0] = '\0';
        }
        free(text);
    }
done:
    gx_diagnostics_free(diagnostics);
    free(keep);
    free(sets);
    return st;
}

/* An expanded model is one program, written out: it loads as that one whatever is asked.
 */
static bool find_expanded(const gx_session *session)
{
    gx_graph *graph = NULL;
    bool is;

    is = load_graph(session, GX_EVAL, 0, false, &graph, NULL) == GX_OK &&
         gx_graph_kind(graph) == GX_TRAIN;
    gx_graph_free(graph);
    return is;
}

/* The programs of one split of the data: whole batches, and the rows that are left over.
 */
static gx_status load_split(gx_session *session, gx_kind kind, int64_t n_rows,
                            bool drop_last, gx_error *err)
{
    const gx_program whole = kind == GX_TRAIN ? GX_PROGRAM_TRAIN : GX_PROGRAM_EVAL;
    const int64_t batch = session->data.batch;
    const int64_t left = n_rows % batch;

    if (!session->graph[whole])
        GX_TRY(load_graph(session, kind, 0, true, &session->graph[whole], err));
    session->rows[whole] = batch;
    if (left == 0 || drop_last)
        return GX_OK;
    GX_TRY(load_graph(session, kind, left, true, &session->graph[whole + 1], err));
    session->rows[whole + 1] = left;
    return GX_OK;
}

static gx_status load_splits(gx_session *session, gx_error *err)
{
    const gx_data_info *const data = &session->data;

    session->is_expanded = find_expanded(session);
    if (session->is_expanded)
        return GX_OK;
    GX_TRY(load_split(session, GX_TRAIN, data->n_train, data->drop_last, err));
    if (data->n_held > 0 && session->args->evaluate != GX_EVAL_NEVER)
        GX_TRY(load_split(session, GX_EVAL, data->n_held, false, err));
    return GX_OK;
}

static gx_status check_input_name(const gx_session *session, const char *name,
                                  gx_error *err)
{
    const gx_graph *const graph = session->graph[GX_PROGRAM_TRAIN];
    const size_t n = gx_graph_value_count(graph);
    const char **names = calloc(n + 1, sizeof *names);
    const char *near;
    size_t n_names = 0;
    gx_status st = GX_OK;

    if (!names)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const gx_value_info value = gx_graph_value(graph, i);

        if (value.kind != GX_VALUE_INPUT && value.kind != GX_VALUE_PARAM &&
            value.kind != GX_VALUE_STATE)
            continue;
        names[n_names++] = value.name;
        if (strcmp(value.name, name) == 0)
            goto done;
    }
    near = gx_near_name(name, names);
    st = GX_FAIL(err, GX_ERR_ARGUMENT, "--in %s: no input, parameter or state%s%s%s",
                 name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
done:
    free(names);
    return st;
}

static gx_status read_inputs(gx_session *session, gx_error *err)
{
    const gx_pairs *const pairs = &session->args->inputs;

    if (pairs->n == 0)
        return GX_OK;
    session->inputs = calloc(pairs->n, sizeof *session->inputs);
    if (!session->inputs)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < pairs->n; i++) {
        GX_TRY(check_input_name(session, pairs->items[i].name, err));
        GX_TRY(gx_npy_read(pairs->items[i].value, &session->inputs[i], err));
        if (gx_counter_check(session->graph[GX_PROGRAM_TRAIN], pairs->items[i].name,
                             &session->inputs[i], err) != GX_OK) {
            gx_error_prefix(err, pairs->items[i].value);
            return err->status;
        }
    }
    return GX_OK;
}

static gx_status load_train(gx_session *session, gx_error *err)
{
    gx_graph **const graph = &session->graph[GX_PROGRAM_TRAIN];

    gx_graph_free(*graph);
    GX_TRY(load_graph(session, GX_TRAIN, 0, true, graph, err));
    session->data = gx_graph_data(*graph);
    session->rows[GX_PROGRAM_TRAIN] = session->data.batch;
    return GX_OK;
}

/* Whether the data stream is the flag's to say, then the model's, and where that leaves
 * it open it is asked how much room there is. */
static gx_status choose_streaming(gx_session *session, gx_error *err)
{
    bool fits = true;

    if (session->args->stream && session->data.n_train == 0)
        return GX_FAIL(err, GX_ERR_ARGUMENT, "--stream: the model has no data");
    if (session->data.n_train > 0 && session->data.stream_auto && !session->streams)
        GX_TRY(
            gx_data_fits(session->graph[GX_PROGRAM_TRAIN], session->device, &fits, err));
    if (!fits) {
        session->no_room = session->streams = true;
        GX_TRY(load_train(session, err));
    }
    session->streams = session->data.streams;
    return GX_OK;
}

gx_status gx_session_load(gx_session *session, const gx_args *args,
                          const gx_session_needs *needs, int device, gx_mode mode,
                          gx_error *err)
{
    *session = (gx_session){ .args = args,
                             .needs = *needs,
                             .device = device,
                             .mode = mode,
                             .streams = args->stream || needs->stream,
                             .steps_per_launch = 1,
                             .state_s = -1 };
    gx_launches_start(session);
    GX_TRY(gx_device_info_get(device, &session->device_info, err));
    GX_TRY(load_train(session, err));
    GX_TRY(choose_streaming(session, err));
    GX_TRY(gx_launches_check(session, err));
    if (needs->data_programs && session->data.n_train > 0)
        GX_TRY(load_splits(session, err));
    GX_TRY(gx_destinations_spare_model(session, err));
    return read_inputs(session, err);
}

gx_status gx_session_try(const gx_args *args, bool quiet, gx_error *err)
{
    gx_session session = { .args = args,
                           .needs = { .quiet = quiet },
                           .device = GX_CPU,
                           .mode = GX_MODE_CPU,
                           .streams = args->stream };
    gx_status st = load_train(&session, err);

    if (st == GX_OK)
        st = gx_launches_check(&session, err);
    if (st == GX_OK)
        st = read_inputs(&session, err);
    gx_session_close(&session);
    return st;
}

/* --- state and execs --- */

/* `host` in a type that the library converts from: integers stand as reals when the
 * tensor holds reals. The result is the caller's to free. */
static gx_status convert(const gx_tensor *host, gx_dtype dtype, gx_tensor *converted,
                         gx_error *err)
{
    *converted = *host;
    converted->dtype = host->dtype == GX_I32 && dtype != GX_I32 ? GX_F64 : host->dtype;
    GX_TRY(gx_host_tensor_alloc(converted, err));
    const int64_t n = gx_count(host);
    if (converted->dtype == host->dtype)
        memcpy(converted->data, host->data, (size_t)n * gx_dtype_bytes(host->dtype));
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)converted->data)[i] = ((const int32_t *)host->data)[i];
    return GX_OK;
}

/* Writes the tensors of --in whose kind is an input (`exec`), or is none (exec NULL). */
static gx_status write_given(const gx_session *session, const gx_graph *graph,
                             gx_exec *exec, gx_error *err)
{
    for (size_t i = 0; i < session->args->inputs.n; i++) {
        const char *const name = session->args->inputs.items[i].name;
        const ptrdiff_t at = gx_graph_find(graph, name);
        gx_value_info value;
        gx_tensor tensor;
        gx_status st;

        if (at < 0)
            continue;
        value = gx_graph_value(graph, (size_t)at);
        if ((value.kind == GX_VALUE_INPUT) != (exec != NULL))
            continue;
        GX_TRY(convert(&session->inputs[i], value.dtype, &tensor, err));
        st = exec ? gx_exec_write(exec, name, &tensor, err)
                  : gx_state_write(session->state, name, &tensor, err);
        free(tensor.data);
        if (st != GX_OK) {
            gx_error_prefix(err, session->args->inputs.items[i].value);
            return st;
        }
    }
    return GX_OK;
}

gx_status gx_session_write_state(gx_session *session, const gx_value_info *value,
                                 const gx_tensor *host, gx_error *err)
{
    gx_tensor tensor;
    gx_status st;

    GX_TRY(convert(host, value->dtype, &tensor, err));
    st = gx_state_write(session->state, value->name, &tensor, err);
    free(tensor.data);
    return st;
}

gx_status gx_session_write_inputs(const gx_session *session, const gx_graph *graph,
                                  gx_exec *exec, gx_error *err)
{
    return write_given(session, graph, exec, err);
}

gx_status gx_session_open(gx_session *session, gx_error *err)
{
    const gx_graph *graphs[GX_N_PROGRAMS];
    const double start = gx_clock();
    size_t n = 0;

    for (int i = 0; i < GX_N_PROGRAMS; i++)
        if (session->graph[i])
            graphs[n++] = session->graph[i];
    GX_TRY(gx_state_create(graphs, n,
                           &(gx_state_options){ .device = session->device,
                                                .seed = session->args->seed,
                                                .exact = session->needs.exact },
                           &session->state, err));
    GX_TRY(gx_saved_read(session, err));
    GX_TRY(write_given(session, session->graph[GX_PROGRAM_TRAIN], NULL, err));
    session->state_s = gx_clock() - start;
    return GX_OK;
}

gx_plan_options gx_session_plan_options(const gx_session *session)
{
    const gx_args *const args = session->args;
    gx_plan_options options = {
        .device = session->device,
        .pin_file = session->needs.no_pin ? NULL : args->plan,
        .cache_folder = args->no_cache ? "" : NULL,
    };

    if (session->device == GX_CPU) /* the others change nothing */
        return options;
    options.unfused = args->unfused;
    options.force = args->force;
    options.lanes = args->lanes > 0 ? (int)args->lanes : 0;
    options.programmatic = (gx_choice)args->programmatic;
    options.order = (gx_node_order)args->order;
    options.skip_if = (gx_choice)args->skip;
    gx_launches_ask(session, &options);
    return options;
}

const char *gx_program_ending(gx_program program)
{
    static const char *const endings[GX_N_PROGRAMS] = { "", ".short", ".eval",
                                                        ".eval-short" };

    return endings[program];
}

/* Each program has a plan of its own, and so a file of its own beside --plan's. */
static gx_status make_plan(gx_session *session, gx_program program, gx_error *err)
{
    gx_plan_options options = gx_session_plan_options(session);
    char *file = NULL;
    gx_status st = GX_OK;

    if (program != GX_PROGRAM_TRAIN)
        options.steps_per_launch = 0;
    if (program == GX_PROGRAM_EVAL || program == GX_PROGRAM_EVAL_SHORT)
        options.skip_if = GX_AUTO; /* of updates, which they have none of */
    if (options.pin_file) {
        const size_t size = strlen(options.pin_file) + sizeof ".eval-short";

        file = malloc(size);
        if (!file)
            return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
        snprintf(file, size, "%s%s", options.pin_file, gx_program_ending(program));
        options.pin_file = file;
        st =
            gx_out_folders_make(session->args, err); /* the plan may be for one of them */
    } else if (!session->needs.no_pin) {
        GX_TRY(gx_saved_plan(session, program, &file, err));
        options.pin_file = file;
    }
    if (st == GX_OK)
        st = gx_plan_create(session->graph[program], &options, &session->plan[program],
                            err);
    free(file);
    if (st == GX_OK && options.steps_per_launch == GX_STEPS_AUTO)
        gx_launches_take(session, session->plan[program]);
    if (st == GX_OK && program == GX_PROGRAM_TRAIN)
        gx_plan_say(session);
    return st;
}

gx_status gx_session_exec(gx_session *session, gx_program program, bool unrolled,
                          gx_exec **exec, gx_error *err)
{
    if (!session->plan[program])
        GX_TRY(make_plan(session, program, err));
    const int64_t k = unrolled ? session->steps_per_launch : 1;
    gx_exec **const made = &session->exec[program][k > 1];
    if (!*made) {
        GX_TRY(gx_exec_create(session->plan[program], session->state,
                              &(gx_exec_options){ .steps_per_launch = (int)k,
                                                  .step_loop = session->step_loop },
                              made, err));
        GX_TRY(gx_session_write_inputs(session, session->graph[program], *made, err));
    }
    *exec = *made;
    return GX_OK;
}

void gx_session_close(gx_session *session)
{
    for (int i = 0; i < GX_N_PROGRAMS; i++) {
        gx_exec_free(session->exec[i][0]);
        gx_exec_free(session->exec[i][1]);
        gx_plan_free(session->plan[i]);
    }
    gx_state_free(session->state);
    for (int i = 0; i < GX_N_PROGRAMS; i++)
        gx_graph_free(session->graph[i]);
    for (size_t i = 0; session->inputs && i < session->args->inputs.n; i++)
        free(session->inputs[i].data);
    free(session->inputs);
    *session = (gx_session){ 0 };
}

/* --- what is said of it --- */

gx_dtype gx_session_dtype(const gx_session *session, const gx_value_info *value)
{
    return session->needs.exact && value->dtype != GX_I32 ? GX_F64 : value->dtype;
}

bool gx_graph_trains(const gx_graph *graph)
{
    for (size_t i = 0; i < gx_graph_node_count(graph); i++)
        if (gx_graph_node(graph, i).phase == GX_PHASE_OPTIMIZER)
            return true;
    return false;
}

bool gx_is_left_out(const gx_graph *graph, size_t i)
{
    return gx_graph_value(graph, i).trainable && gx_graph_trains(graph) &&
           !gx_graph_updates(graph, i);
}

gx_words gx_session_place(const gx_session *session)
{
    gx_words words;

    if (session->device == GX_CPU)
        snprintf(words.text, sizeof words.text, "CPU");
    else
        snprintf(words.text, sizeof words.text, "GPU %d, %.48s", session->device,
                 session->device_info.name);
    return words;
}

gx_words gx_plan_mark(const gx_plan *plan)
{
    const gx_plan_info info = gx_plan_info_get(plan);
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    gx_words words;

    for (size_t i = 0; i < gx_plan_unit_count(plan); i++) {
        const gx_unit_info unit = gx_plan_unit(plan, i);
        char text[160];

        snprintf(text, sizeof text, "%zu+%zu %s %d %zu;", unit.first_node, unit.n_nodes,
                 unit.alternative ? unit.alternative : "cpu", unit.lane,
                 unit.workspace_bytes);
        for (const char *at = text; *at; at++)
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    }
    hash = (hash ^ (unsigned char)info.programmatic) * UINT64_C(1099511628211);
    if (info.order == GX_ORDER_DATA_FIRST)
        hash = (hash ^ 1) * UINT64_C(1099511628211);
    snprintf(words.text, sizeof words.text, "%016llx", (unsigned long long)hash);
    return words;
}
