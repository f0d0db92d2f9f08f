/* How many steps a launch of the graph holds, and which of its updates may be skipped. */
#include "launches.h"

void gx_launches_start(gx_session *session)
{
    const gx_args *const args = session->args;
    const bool many = session->mode == GX_MODE_GRAPH && args->steps_per_launch > 1;

    session->steps_per_launch = many ? args->steps_per_launch : 1;
    session->step_loop = many && args->step_loop == GX_ON;
}

/* What a loss_scale gives: the number of the update, negative where there is none. */
static bool may_skip(const gx_graph *graph)
{
    return gx_graph_find(graph, "gexec.update") >= 0;
}

/* A loop on the device reads the same batch in each turn. */
gx_status gx_launches_check(const gx_session *session, gx_error *err)
{
    const gx_args *const args = session->args;

    if (args->skip == GX_ON && !may_skip(session->graph[GX_PROGRAM_TRAIN]))
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "--skip if: the model skips no updates: it has no loss_scale");
    if (!session->streams || session->mode != GX_MODE_GRAPH)
        return GX_OK;
    if (args->step_loop == GX_ON)
        return GX_FAIL(err, GX_ERR_ARGUMENT,
                       "--step-loop on: the data stream, and each step of a launch needs "
                       "a batch of its own: steps that stream are unrolled");
    return GX_OK;
}

void gx_launches_say(const gx_session *session)
{
    if (session->streams && session->mode == GX_MODE_GRAPH &&
        session->args->steps_per_launch == GX_STEPS_AUTO)
        gx_say(session->args, "the data stream, and each launch waits for its batches: "
                              "one step a launch");
}

/* The most steps that training can put into one launch: an epoch's whole batches, or all
 * that are asked for. */
static int64_t longest_launch(const gx_session *session)
{
    const int64_t n_steps = session->args->steps;
    int64_t most = 0;

    if (!session->needs.data_programs)
        return 0;
    if (session->data.n_train > 0)
        most = session->data.n_train / session->data.batch;
    return n_steps > 0 && (most == 0 || n_steps < most) ? n_steps : most;
}

void gx_launches_ask(const gx_session *session, gx_plan_options *options)
{
    if (session->args->steps_per_launch != GX_STEPS_AUTO ||
        session->mode != GX_MODE_GRAPH)
        return;
    options->steps_per_launch = GX_STEPS_AUTO;
    options->step_loop = (gx_choice)session->args->step_loop;
    options->longest_launch = longest_launch(session);
}

void gx_launches_take(gx_session *session, const gx_plan *plan)
{
    gx_plan_info info = gx_plan_info_get(plan);

    /* Of another run's data, where a plan file says it; those that stream have no loop.
     */
    if (session->streams && info.step_loop)
        info.steps_per_launch = 1;
    session->steps_per_launch = info.steps_per_launch > 1 ? info.steps_per_launch : 1;
    session->step_loop = session->steps_per_launch > 1 && info.step_loop;
}

/* --- what is said of it --- */

gx_words gx_launches_words(const gx_session *session)
{
    gx_words words = { "one step a launch" };

    if (session->steps_per_launch > 1)
        snprintf(words.text, sizeof words.text, "%lld steps a launch, %s",
                 (long long)session->steps_per_launch,
                 session->step_loop ? "in a loop" : "unrolled");
    return words;
}

static void print_skip(const gx_plan *plan, FILE *out)
{
    static const char *const ways[2] = { "skip themselves", "are in an IF node" };
    const gx_plan_info info = gx_plan_info_get(plan);
    size_t n = 0;

    for (size_t i = 0; i < gx_plan_unit_count(plan); i++)
        n += gx_plan_unit(plan, i).in_if;
    if (info.skip_if)
        fprintf(out, "  updates in an IF node, which skips them: %zu unit%s\n", n,
                n == 1 ? "" : "s");
    for (int i = 0; i < 2; i++)
        if (info.skip_us[i] >= 0)
            fprintf(out, "  a step whose updates %s: %s%s\n", ways[i],
                    gx_words_seconds(info.skip_us[i] * 1e-6).text,
                    info.skip_if == (i == 1) ? ", taken" : "");
}

static void print_orders(const gx_plan_info *info, FILE *out)
{
    static const gx_node_order orders[2] = { GX_ORDER_DERIVED, GX_ORDER_DATA_FIRST };

    for (int i = 0; i < 2; i++)
        if (info->order_us[i] >= 0)
            fprintf(out, "  a step in the order %s: %s%s\n",
                    gx_node_order_name(orders[i]),
                    gx_words_seconds(info->order_us[i] * 1e-6).text,
                    info->order == orders[i] ? ", taken" : "");
}

void gx_launches_print(const gx_plan *plan, FILE *out)
{
    const gx_plan_info info = gx_plan_info_get(plan);

    print_orders(&info, out);
    print_skip(plan, out);
    for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++) {
        const gx_launch_trial *const trial = &info.launch_trial[i];
        const bool taken = trial->steps_per_launch == info.steps_per_launch &&
                           trial->loop == info.step_loop;

        if (trial->us >= 0)
            fprintf(out, "  a step with %d step%s a launch%s: %s%s\n",
                    trial->steps_per_launch, trial->steps_per_launch == 1 ? "" : "s",
                    trial->loop ? ", in a loop" : "",
                    gx_words_seconds(trial->us * 1e-6).text, taken ? ", taken" : "");
    }
}

void gx_launches_put(gx_json *json, const gx_plan *plan)
{
    const gx_plan_info info = gx_plan_info_get(plan);

    gx_json_text(json, "order", gx_node_order_name(info.order));
    gx_json_figure(json, "derived_step_s", info.order_us[0] * 1e-6);
    gx_json_figure(json, "data_first_step_s", info.order_us[1] * 1e-6);
    gx_json_bool(json, "skip_if", info.skip_if);
    gx_json_figure(json, "predicated_step_s", info.skip_us[0] * 1e-6);
    gx_json_figure(json, "if_step_s", info.skip_us[1] * 1e-6);

    gx_json_array(json, "launch_trials");
    for (int i = 0; i < GX_N_LAUNCH_TRIALS; i++) {
        const gx_launch_trial *const trial = &info.launch_trial[i];

        if (trial->us < 0)
            continue;
        gx_json_object(json, NULL);
        gx_json_integer(json, "steps_per_launch", trial->steps_per_launch);
        gx_json_bool(json, "loop", trial->loop);
        gx_json_figure(json, "step_s", trial->us * 1e-6);
        gx_json_end(json);
    }
    gx_json_end(json);
}
