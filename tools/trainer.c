/* Running the steps of a model: epochs, the short last batch, evaluation, the losses. */
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "interrupt.h"

/* Steps are submitted in pieces of about this long, so that an interrupt is answered. */
static const double piece_s = 0.05;

enum { TRAINING_STEPS = 100 }; /* of a model without data */

/* Figures on their way to one for all rows. */
typedef struct sums {
    double value[GX_MAX_LOGGED];
    double weight[GX_MAX_LOGGED]; /* rows, or labels that count */
    int64_t rows, steps;
} sums;

typedef struct trainer {
    gx_session *session;
    gx_history *history;
    gx_progress progress;
    gx_data_info data;
    int64_t row;      /* of the epoch, as the device's counter has it */
    int32_t epoch_at; /* which epoch that is, by its counter */
    int64_t piece;    /* steps of the next piece */
    sums epoch;       /* of the epoch under way */
    bool partial;     /* its first rows were not seen */
    /* Of each step of a piece the labels that count in each column whose mean leaves some
     * out, GX_LOG_ROWS a column; NULL: there is no such column. */
    int64_t *counts;
} trainer;

/* Whether the mean in column c of the log leaves labels of the data out. */
static bool leaves_out(const trainer *t, const gx_graph *graph, size_t c)
{
    return t->data.n_train > 0 && gx_graph_logged_labels(graph, c) != NULL;
}

/* --- the losses --- */

static gx_status grow(gx_history *history, int64_t n, gx_error *err)
{
    const int64_t capacity = 2 * history->capacity + n + 256;
    double *rows;

    if (history->n_columns == 0 || history->n_rows + n <= history->capacity)
        return GX_OK;
    rows = realloc(history->rows, (size_t)capacity * history->n_columns * sizeof *rows);
    if (!rows)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory for the losses of %lld steps",
                       (long long)capacity);
    history->rows = rows;
    history->capacity = capacity;
    return GX_OK;
}

/* Looks for the first loss that is no number, in the rows from `first` on, and says so.
 * The mean of no labels is none, and no mistake. */
static void note_not_finite(trainer *t, int64_t first)
{
    const gx_graph *const graph = t->session->graph[GX_PROGRAM_TRAIN];
    const bool may_be_none = leaves_out(t, graph, 0);
    gx_history *const history = t->history;
    char line[80];

    for (int64_t i = first; i < history->n_rows && !history->not_finite_from; i++)
        if (!isfinite(history->rows[i * (int64_t)history->n_columns]) &&
            !(may_be_none && t->counts[i - first] == 0)) {
            history->not_finite_from = i + 1;
            snprintf(line, sizeof line,
                     "gexec run: the loss is not finite from step %lld on",
                     (long long)history->not_finite_from);
            gx_progress_note(&t->progress, line);
        }
}

/* --- figures of many rows --- */

/* Asks how many labels count in each of n steps from `sample` of `epoch` on. */
static gx_status count_labels(trainer *t, gx_program program, int64_t sample,
                              int32_t epoch, int64_t n, gx_error *err)
{
    const gx_graph *const graph = t->session->graph[program];

    for (size_t c = 0; c < GX_MAX_LOGGED; c++)
        if (leaves_out(t, graph, c))
            GX_TRY(gx_state_count_labels(t->session->state, graph, c, (int32_t)sample,
                                         epoch, n, t->counts + c * GX_LOG_ROWS, err));
    return GX_OK;
}

/* What a value of one step adds. A perplexity is the exponential of a mean, so it is the
 * logarithms that are added; a sum over the rows has their number in it. */
static double weigh(double value, gx_average average, double weight)
{
    if (average == GX_AVERAGE_SUM || average == GX_AVERAGE_STEPS)
        return value;
    return (average == GX_AVERAGE_EXP_OF_MEAN_LOG ? log(value) : value) * weight;
}

/* Adds what n steps of `rows` rows each told, and count_labels counted. */
static void add_rows(const trainer *t, sums *all, const gx_graph *graph,
                     const double *values, size_t n_columns, int64_t n_steps,
                     int64_t rows)
{
    for (size_t c = 0; c < n_columns; c++) {
        const gx_average average = gx_graph_logged_average(graph, c);
        const int64_t *const counts =
            leaves_out(t, graph, c) ? t->counts + c * GX_LOG_ROWS : NULL;

        for (int64_t i = 0; i < n_steps; i++) {
            const double value = values[i * (int64_t)n_columns + (int64_t)c];
            const double weight = (double)(counts ? counts[i] : rows);

            if (counts && counts[i] == 0) /* the mean of none is no number */
                continue;
            all->value[c] += weigh(value, average, weight);
            all->weight[c] += weight;
        }
    }
    all->rows += n_steps * rows;
    all->steps += n_steps;
}

/* One figure for all rows: what one batch of them would have told, or the mean of what
 * the steps told. */
static void join(const sums *all, const gx_graph *graph, size_t n_columns,
                 double *figures)
{
    for (size_t c = 0; c < n_columns; c++) {
        const double sum = all->value[c], mean = sum / all->weight[c];

        switch (gx_graph_logged_average(graph, c)) {
        case GX_AVERAGE_MEAN:
            figures[c] = mean;
            break;
        case GX_AVERAGE_EXP_OF_MEAN_LOG:
            figures[c] = exp(mean);
            break;
        case GX_AVERAGE_SUM:
            figures[c] = sum;
            break;
        case GX_AVERAGE_STEPS:
            figures[c] = sum / (double)all->steps;
            break;
        }
    }
}

static gx_status append(gx_evaluation **list, size_t *n, const trainer *t, int64_t rows,
                        gx_evaluation **made, gx_error *err)
{
    gx_evaluation *grown = realloc(*list, (*n + 1) * sizeof *grown);

    if (!grown)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    *list = grown;
    *made = &grown[(*n)++];
    **made = (gx_evaluation){ .step = t->history->steps,
                              .epoch = t->history->epochs,
                              .rows = rows };
    return GX_OK;
}

const char *gx_average_mark(const gx_graph *graph, size_t column)
{
    const gx_average average = gx_graph_logged_average(graph, column);

    return average == GX_AVERAGE_SUM     ? " (sum)"
           : average == GX_AVERAGE_STEPS ? " (mean of steps)"
                                         : "";
}

/* "epoch 2, step 46: TITLE  loss 0.2  accuracy 0.9" */
static void note_figures(trainer *t, const char *title, const gx_evaluation *figures,
                         const gx_graph *graph, size_t n_columns,
                         const char *const *names)
{
    char line[400];
    size_t length = 0;

    length +=
        (size_t)snprintf(line, sizeof line, "epoch %lld, step %lld: %s",
                         (long long)figures->epoch, (long long)figures->step, title);
    for (size_t c = 0; c < n_columns && length < sizeof line - 1; c++)
        length +=
            (size_t)snprintf(line + length, sizeof line - length, "  %s %.4g%s", names[c],
                             gx_plain_nan(figures->value[c]), gx_average_mark(graph, c));
    gx_progress_note(&t->progress, line);
}

/* An epoch of which a part ran before this run has no mean that could be told. */
static gx_status end_epoch(trainer *t, gx_error *err)
{
    const gx_graph *const graph = t->session->graph[GX_PROGRAM_TRAIN];
    gx_history *const history = t->history;
    gx_evaluation *mean = NULL;

    if (!t->partial && t->epoch.rows > 0 && history->n_columns > 0) {
        GX_TRY(append(&history->means, &history->n_means, t, t->epoch.rows, &mean, err));
        join(&t->epoch, graph, history->n_columns, mean->value);
        note_figures(t, "mean of the epoch", mean, graph, history->n_columns,
                     history->names);
    }
    t->epoch = (sums){ 0 };
    t->partial = false;
    return GX_OK;
}

/* Takes the log's last n rows over before later steps write over them. */
static gx_status fetch_log(trainer *t, gx_exec *exec, gx_program program, int64_t n,
                           gx_error *err)
{
    gx_history *const history = t->history;

    if (history->n_columns == 0)
        return GX_OK;
    GX_TRY(grow(history, n, err));
    GX_TRY(gx_exec_log(
        exec, n, history->rows + history->n_rows * (int64_t)history->n_columns, err));
    history->n_rows += n;
    add_rows(t, &t->epoch, t->session->graph[program],
             history->rows + (history->n_rows - n) * (int64_t)history->n_columns,
             history->n_columns, n, t->session->rows[program]);
    note_not_finite(t, history->n_rows - n);
    return GX_OK;
}

static size_t read_names(const gx_graph *graph, const char **names)
{
    size_t n = 0;

    for (; n < GX_MAX_LOGGED && gx_graph_logged(graph, n); n++)
        names[n] = gx_graph_logged(graph, n);
    return n;
}

/* --- evaluation --- */

/* Runs n steps of an evaluation program from row `row` of the held-out ones on, and adds
 * its figures. */
static gx_status evaluate_program(trainer *t, gx_program program, int64_t row,
                                  int64_t n_steps, sums *all, gx_error *err)
{
    gx_session *const session = t->session;
    const size_t n_columns = t->history->n_held_columns;
    double *rows;
    gx_exec *exec;
    gx_status st = GX_OK;

    if (n_steps == 0)
        return GX_OK;
    GX_TRY(gx_session_exec(session, program, false, &exec, err));
    rows = malloc(GX_LOG_ROWS * n_columns * sizeof *rows);
    if (!rows)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    while (n_steps > 0 && st == GX_OK) {
        const int64_t n = n_steps < GX_LOG_ROWS ? n_steps : GX_LOG_ROWS;

        st = gx_exec_run(exec, session->mode, n, err);
        if (st == GX_OK)
            st = count_labels(t, program, row, 0, n, err);
        if (st == GX_OK)
            st = gx_exec_log(exec, n, rows, err);
        if (st == GX_OK)
            add_rows(t, all, session->graph[program], rows, n_columns, n,
                     session->rows[program]);
        n_steps -= n;
        row += n * session->rows[program];
    }
    free(rows);
    return st;
}

const gx_graph *gx_eval_graph(const gx_session *session)
{
    return session->graph[session->graph[GX_PROGRAM_EVAL] ? GX_PROGRAM_EVAL
                                                          : GX_PROGRAM_EVAL_SHORT];
}

static gx_status evaluate(trainer *t, gx_error *err)
{
    const gx_graph *const graph = gx_eval_graph(t->session);
    gx_history *const history = t->history;
    const int64_t n_held = t->data.n_held;
    const double start = gx_clock();
    sums all = { .rows = 0 };
    gx_evaluation *evaluation = NULL;

    if (history->n_held_columns == 0)
        return GX_OK;
    const int64_t n_whole = n_held / t->data.batch;

    GX_TRY(evaluate_program(t, GX_PROGRAM_EVAL, 0, n_whole, &all, err));
    GX_TRY(evaluate_program(t, GX_PROGRAM_EVAL_SHORT, n_whole * t->data.batch,
                            n_held % t->data.batch ? 1 : 0, &all, err));
    GX_TRY(append(&history->evaluations, &history->n_evaluations, t, n_held, &evaluation,
                  err));
    join(&all, graph, history->n_held_columns, evaluation->value);
    history->evaluate_s += gx_clock() - start;
    t->progress.paused_s += gx_clock() - start;
    note_figures(t, "held out", evaluation, graph, history->n_held_columns,
                 history->held_names);
    return GX_OK;
}

/* --- steps --- */

/* The next piece: which program, how many steps, and whether several go in one launch. */
static gx_program next_piece(const trainer *t, int64_t *n, bool *unrolled)
{
    const int64_t k = t->session->steps_per_launch;
    int64_t left = t->history->n_steps - t->history->steps;

    *unrolled = false;
    if (t->data.n_train > 0) {
        const int64_t whole = (t->data.n_train - t->row) / t->data.batch;

        if (whole == 0) {
            *n = 1;
            return t->session->graph[GX_PROGRAM_TRAIN_SHORT] ? GX_PROGRAM_TRAIN_SHORT
                                                             : GX_PROGRAM_TRAIN;
        }
        left = left < whole ? left : whole;
    }
    *n = left < t->piece ? left : t->piece;
    if (k > 1 && left >= k) {
        *unrolled = true;
        *n = *n < k ? k : *n - *n % k;
    }
    return GX_PROGRAM_TRAIN;
}

/* Moves on as the device's counters do; true at the end of an epoch. */
static bool advance(trainer *t, gx_program program, int64_t n)
{
    const int64_t need = t->data.drop_last ? t->data.batch : 1;

    t->history->steps += n;
    if (t->data.n_train == 0)
        return false;
    t->row += n * t->session->rows[program];
    if (t->data.n_train - t->row >= need)
        return false;
    t->row = 0;
    t->epoch_at++;
    t->history->epochs++;
    return true;
}

static void show(trainer *t)
{
    const gx_history *const history = t->history;

    gx_progress_update(
        &t->progress,
        &(gx_progress_point){
            .step = history->steps,
            .n_steps = history->n_steps,
            .epoch = history->epochs < history->n_epochs ? history->epochs + 1
                                                         : history->epochs,
            .n_epochs = history->n_epochs,
            .n_columns = history->n_rows ? history->n_columns : 0,
            .names = history->names,
            .values = history->n_rows ? history->rows + (history->n_rows - 1) *
                                                            (int64_t)history->n_columns
                                      : NULL });
}

static gx_status step_piece(trainer *t, bool *epoch_ended, gx_error *err)
{
    gx_session *const session = t->session;
    const double before = gx_clock();
    gx_exec *exec;
    bool unrolled;
    int64_t n;
    const gx_program program = next_piece(t, &n, &unrolled);

    GX_TRY(gx_session_exec(session, program, unrolled, &exec, err));
    const double start = gx_clock();
    t->progress.paused_s += start - before;
    t->history->last = exec;
    t->history->last_program = program;
    GX_TRY(gx_exec_run(exec, session->mode, n, err));
    GX_TRY(count_labels(t, program, t->row, t->epoch_at, n, err)); /* while they run */
    GX_TRY(gx_exec_sync(exec, err));
    GX_TRY(fetch_log(t, exec, program, n, err));
    *epoch_ended = advance(t, program, n);
    const double took = gx_clock() - start;
    t->history->train_s += took;
    if (took < piece_s && t->piece < GX_LOG_ROWS)
        t->piece *= 2;
    else if (took > 4 * piece_s && t->piece > 1)
        t->piece /= 2;
    return GX_OK;
}

static gx_status steps(trainer *t, gx_error *err)
{
    gx_history *const history = t->history;
    const int when = t->session->args->evaluate;
    bool epoch_ended = false;

    while (history->steps < history->n_steps && !history->interrupted) {
        GX_TRY(step_piece(t, &epoch_ended, err));
        show(t);
        if (epoch_ended)
            GX_TRY(end_epoch(t, err));
        history->interrupted = gx_interrupted();
        if (epoch_ended && when == GX_EVAL_EPOCH && !history->interrupted)
            GX_TRY(evaluate(t, err));
    }
    /* Steps that end within an epoch, or evaluation at the end alone. */
    if (!history->interrupted && when != GX_EVAL_NEVER &&
        (when == GX_EVAL_END || !epoch_ended))
        return evaluate(t, err);
    return GX_OK;
}

/* Where in the epoch the state stands: 0, or what --resume or --in gave. */
static gx_status find_row(trainer *t, gx_error *err)
{
    int32_t sample = 0;
    gx_tensor counter = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &sample };

    if (t->data.n_train <= 0)
        return GX_OK;
    GX_TRY(gx_state_read(t->session->state, "gexec.sample", &counter, err));
    counter.data = &t->epoch_at;
    GX_TRY(gx_state_read(t->session->state, "gexec.epoch", &counter, err));
    if (sample < 0 || sample >= t->data.n_train)
        return GX_FAIL(err, GX_ERR_DATA,
                       "gexec.sample is %d: expected a training row, 0 to %lld", sample,
                       (long long)t->data.n_train - 1);
    t->row = sample;
    t->partial = sample > 0;
    return GX_OK;
}

/* How many steps there are to do. */
static gx_status set_goal(trainer *t, gx_error *err)
{
    const gx_args *const args = t->session->args;
    const gx_data_info *const data = &t->data;
    int64_t per_epoch, epochs, done;

    if (data->n_train <= 0) {
        if (args->epochs > 0)
            return GX_FAIL(err, GX_ERR_ARGUMENT,
                           "--epochs: the model has no data; say --steps");
        t->history->n_steps = args->steps > 0 ? args->steps
                              : gx_graph_trains(t->session->graph[GX_PROGRAM_TRAIN])
                                  ? TRAINING_STEPS
                                  : 1;
        return GX_OK;
    }
    per_epoch = data->n_train / data->batch;
    if (data->n_train % data->batch && !data->drop_last)
        per_epoch++;
    if (per_epoch == 0)
        return GX_FAIL(
            err, GX_ERR_DATA,
            "%lld training rows are less than one batch of %lld, and the model "
            "drops the last batch",
            (long long)data->n_train, (long long)data->batch);
    epochs = args->epochs > 0 ? args->epochs : data->epochs > 0 ? data->epochs : 1;
    /* An epoch under way counts as the first, and what was done of it is not done again.
     */
    done = (t->row + data->batch - 1) / data->batch;
    if (args->steps > 0)
        epochs = (done + args->steps + per_epoch - 1) / per_epoch;
    t->history->n_epochs = epochs;
    t->history->n_steps = args->steps > 0 ? args->steps : epochs * per_epoch - done;
    return GX_OK;
}

/* The counter of steps is an i32, which numbers the rows of the log and is saved. */
static gx_status check_counter(const trainer *t, gx_error *err)
{
    const gx_session *const session = t->session;
    int32_t step = 0;
    gx_tensor counter = { .dtype = GX_I32, .rank = 1, .dim = { 1 }, .data = &step };

    if (gx_graph_find(session->graph[GX_PROGRAM_TRAIN], "gexec.step") < 0)
        return GX_OK;
    GX_TRY(gx_state_read(session->state, "gexec.step", &counter, err));
    if (t->history->n_steps <= INT32_MAX - step)
        return GX_OK;
    return GX_FAIL(err, GX_ERR_LIMIT,
                   "gexec.step is %d, and %lld step%s more would take it past %d, the "
                   "largest number that it holds",
                   step, (long long)t->history->n_steps,
                   t->history->n_steps == 1 ? "" : "s", INT32_MAX);
}

/* A launch takes its steps from one epoch, and whole. */
static void remark_short(const trainer *t)
{
    const int64_t k = t->session->steps_per_launch;
    int64_t most = t->history->n_steps;

    if (t->data.n_train > 0 && t->data.n_train / t->data.batch < most)
        most = t->data.n_train / t->data.batch;
    if (k > 1 && k > most)
        gx_say(t->session->args,
               "%lld step%s at a time are fewer than the %lld of a launch: one step a "
               "launch",
               (long long)most, most == 1 ? "" : "s", (long long)k);
}

/* What the steps waited for their data, of every program that trains. */
static void add_waits(const gx_session *session, gx_history *history)
{
    history->data_wait_s = session->streams ? 0 : -1;
    for (int i = GX_PROGRAM_TRAIN; session->streams && i <= GX_PROGRAM_TRAIN_SHORT; i++)
        for (int k = 0; k < 2; k++) {
            const gx_exec *const exec = session->exec[i][k];
            const gx_exec_stats stats =
                exec ? gx_exec_stats_get(exec) : (gx_exec_stats){ .data_wait_s = 0 };

            history->data_wait_s += stats.data_wait_s;
            history->data_steps += stats.data_steps;
        }
}

/* A place for what count_labels counts, where any program leaves labels out. */
static gx_status make_counts(trainer *t, gx_error *err)
{
    bool any = false;

    for (int i = 0; i < GX_N_PROGRAMS; i++)
        for (size_t c = 0; t->session->graph[i] && c < GX_MAX_LOGGED; c++)
            any |= leaves_out(t, t->session->graph[i], c);
    if (!any)
        return GX_OK;
    t->counts = malloc((size_t)GX_MAX_LOGGED * GX_LOG_ROWS * sizeof *t->counts);
    return t->counts ? GX_OK : GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
}

gx_status gx_train(gx_session *session, gx_history *history, gx_error *err)
{
    trainer t = {
        .session = session, .history = history, .data = session->data, .piece = 1
    };
    gx_status st;

    *history = (gx_history){ .data_wait_s = -1 };
    history->n_columns = read_names(session->graph[GX_PROGRAM_TRAIN], history->names);
    for (int i = GX_PROGRAM_EVAL; i <= GX_PROGRAM_EVAL_SHORT; i++)
        if (session->graph[i])
            history->n_held_columns = read_names(session->graph[i], history->held_names);
    GX_TRY(find_row(&t, err));
    GX_TRY(set_goal(&t, err));
    GX_TRY(check_counter(&t, err));
    GX_TRY(make_counts(&t, err));
    remark_short(&t);
    gx_progress_begin(&t.progress, session->args->quiet);
    st = steps(&t, err);
    free(t.counts);
    add_waits(session, history);
    gx_progress_end(&t.progress);
    return st;
}

double gx_history_wait(const gx_history *history)
{
    return history->data_steps > 0 ? history->data_wait_s / (double)history->data_steps
                                   : -1;
}

void gx_history_free(gx_history *history)
{
    free(history->rows);
    free(history->evaluations);
    free(history->means);
    *history = (gx_history){ 0 };
}
