/* Candidates on the device: an alternative's algorithms are timed, those that may win are
 * checked, and of long ones the best are timed again as they are in a long run. */
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "number.h"
#include "select_bench.h"

enum {
    MAX_ALGOS = 64, /* of a library's candidates are looked at */
    MAX_FINALISTS = 4,
    ROUNDS = 2,   /* of several finalists, in turn, so that a drift counts for all */
    FEW_ALGOS = 8 /* of a long alternative that is hopeless */
};

/* A library's later candidates are given up once one is this much slower than the best.
 */
static const double GIVE_UP_FACTOR = 2;

/* One launch by itself tells a hopeless candidate: it takes so many times the best, and
 * so much more that what a launch itself costs does not matter. */
static const double HOPELESS_FACTOR = 4;
static const double HOPELESS_US = 200;

/* From here on it hardly counts what a launch itself costs: a library's later candidate
 * is given up that is slower than the best by this factor, one launch of either compared
 * with one of the other. */
static const double LONG_US = 50;
static const double LONG_FACTOR = 1.15;

/* A sustained time is longer than that of a burst by up to about so much, and not by as
 * much for every algorithm. */
static const double FINAL_FACTOR = 1.08;

/* An algorithm that was accepted. */
typedef struct accepted {
    int choice, n_launches;
    double us, once_us;
    bool given_up;       /* us is once_us */
    double sustained_us; /* 0 until it is timed */
    size_t workspace_bytes;
    bool has_algo;
    unsigned char algo[GX_ALGO_BYTES];
    char over_tolerance[64]; /* "": it is not, else it is forced */
} accepted;

/* The algorithms of one alternative on one site. */
typedef struct contest {
    gx_bench *bench;
    const gx_selector *selector;
    const gx_alternative *at;
    bool forced;
    double best_us; /* of the alternatives before; <= 0: there is none */
    accepted finalist[MAX_FINALISTS + 1]; /* by time; one more while one is put in */
    int n;
    int n_algos;
    double last_us;   /* of the one that was tried last */
    char refused[64]; /* why the last one is no good */
} contest;

static bool is_known(double us)
{
    return us > 0;
}

/* --- one algorithm --- */

static double give_up_us(const contest *c)
{
    const accepted *best = &c->finalist[0];
    double us = c->best_us, limit;

    if (c->n > 0 && !(is_known(us) && us < best->us))
        us = best->us;
    limit = is_known(us) ? HOPELESS_FACTOR * us + HOPELESS_US : 0;
    if (c->n > 0 && best->us >= LONG_US && LONG_FACTOR * best->once_us < limit)
        limit = LONG_FACTOR * best->once_us;
    return limit;
}

static bool is_long(double us)
{
    return us >= GX_SUSTAINED_US;
}

/* Where the alternative is forced one that is off is better than none. */
static bool has_none_that_is_right(const contest *c)
{
    return c->n == 0 || c->finalist[0].over_tolerance[0] != '\0';
}

/* Only what may win is worth a check, which takes longer than the timing. One launch and
 * many are not compared. */
static bool may_win(const contest *c, const gx_group_time *time)
{
    const accepted *best = &c->finalist[0];

    if (has_none_that_is_right(c))
        return true;
    if (time->given_up != best->given_up)
        return best->given_up;
    if (time->us < best->us)
        return true;
    return !time->given_up && is_long(best->us) && time->us <= FINAL_FACTOR * best->us &&
           (c->n < MAX_FINALISTS || time->us < c->finalist[MAX_FINALISTS - 1].us);
}

/* Among equals the first stays ahead. */
static void put_in(contest *c, const accepted *one)
{
    if (c->n > 0 && ((c->finalist[0].over_tolerance[0] && !one->over_tolerance[0]) ||
                     (c->finalist[0].given_up && !one->given_up)))
        c->n = 0;
    int i = c->n;

    for (; i > 0 && one->us < c->finalist[i - 1].us; i--)
        c->finalist[i] = c->finalist[i - 1];
    c->finalist[i] = *one;
    if (c->n < MAX_FINALISTS)
        c->n++;
    while (c->n > 1 && !(c->finalist[c->n - 1].us <= FINAL_FACTOR * c->finalist[0].us))
        c->n--;
}

static accepted accepted_of(const gx_prepared *prepared, const gx_group_time *time)
{
    accepted one = {
        .choice = prepared->algo_choice,
        .n_launches = time->n_nodes,
        .us = time->us,
        .once_us = time->once_us,
        .given_up = time->given_up,
        .workspace_bytes = prepared->workspace_bytes,
        .has_algo = prepared->has_algo,
    };

    memcpy(one.algo, prepared->algo, sizeof one.algo);
    return one;
}

/* Times what was prepared, and takes it where it may win and makes what it should. */
static gx_status time_and_check(contest *c, const gx_prepared *prepared, gx_error *err)
{
    const gx_group group = gx_bench_group(c->bench, c->at);
    gx_group_time time = { .us = 0, .once_us = 0, .n_nodes = 0 };
    double error = 0;

    GX_TRY(gx_bench_ready(c->bench, prepared, err));
    if (prepared->n_launches != 0)
        GX_TRY(gx_measure_group(c->bench->device, &group, c->at, prepared,
                                c->bench->workspace, give_up_us(c), &time, err));
    c->last_us = time.us;
    if (!may_win(c, &time))
        return GX_OK;
    GX_TRY(gx_bench_compare(c->bench, c->at, prepared, &error, err));
    accepted one = accepted_of(prepared, &time);

    if (!(error <= c->bench->tolerance)) {
        snprintf(c->refused, sizeof c->refused, "error %.2g over tolerance %.2g",
                 gx_unsigned_nan(error), c->bench->tolerance);
        memcpy(one.over_tolerance, c->refused, sizeof one.over_tolerance);
        if (!c->forced || !has_none_that_is_right(c))
            return GX_OK;
    }
    put_in(c, &one);
    return GX_OK;
}

static gx_status try_choice(contest *c, int choice, gx_error *err)
{
    const gx_group group = gx_bench_group(c->bench, c->at);
    gx_prepared prepared = { .n_launches = -1, .algo_choice = choice, .n_algos = 1 };

    c->last_us = -1;
    GX_TRY(c->at->prepare(&group, &c->selector->ctx, &prepared, err));
    gx_status st = GX_OK;
    if (c->selector->measure) {
        c->n_algos = prepared.n_algos;
        st = time_and_check(c, &prepared, err);
    } else {
        const gx_group_time none = { .us = -1, .n_nodes = prepared.n_launches };
        const accepted one = accepted_of(&prepared, &none);

        put_in(c, &one);
    }
    if (c->at->release)
        c->at->release(&prepared);
    return st;
}

/* --- all of them --- */

/* A long list may have its best at the end, and costs little to go through; but not where
 * another alternative is far better than all that was seen. */
static bool gives_up(const contest *c, int choice)
{
    const double best_us = c->n > 0 ? c->finalist[0].us : 0;

    if (c->n == 0 || !is_known(c->best_us))
        return false;
    if (best_us >= LONG_US)
        return choice + 1 >= FEW_ALGOS && best_us > GIVE_UP_FACTOR * c->best_us;
    return c->last_us > GIVE_UP_FACTOR * c->best_us &&
           c->last_us > GIVE_UP_FACTOR * best_us;
}

static bool is_machines(const contest *c, gx_status st)
{
    return c->bench->device->broken || st == GX_ERR_MEMORY ||
           st == GX_ERR_DEVICE_MEMORY || st == GX_ERR_BROKEN;
}

/* The first must run; a later one that does not is left out. */
static gx_status try_all(contest *c, gx_error *err)
{
    c->n_algos = 1;
    for (int choice = 0; choice < c->n_algos && choice < MAX_ALGOS; choice++) {
        gx_error why = { 0 };
        const gx_status st = try_choice(c, choice, &why);

        if (st != GX_OK && (choice == 0 || is_machines(c, st)))
            return GX_FAIL_NATIVE(err, st, why.native, "%s", why.message);
        if (gives_up(c, choice))
            break;
    }
    return GX_OK;
}

/* --- in a long run --- */

static gx_status sustain(contest *c, accepted *one, int n_rounds, gx_error *err)
{
    const gx_group group = gx_bench_group(c->bench, c->at);
    gx_prepared prepared = { .n_launches = -1,
                             .algo_choice = one->choice,
                             .n_algos = 1,
                             .has_algo = one->has_algo };
    double us = one->us;

    memcpy(prepared.algo, one->algo, sizeof prepared.algo);
    GX_TRY(c->at->prepare(&group, &c->selector->ctx, &prepared, err));
    gx_status st = gx_bench_ready(c->bench, &prepared, err);
    if (st == GX_OK)
        st = gx_measure_sustained(c->bench->device, &group, c->at, &prepared,
                                  c->bench->workspace, &us, err);
    if (c->at->release)
        c->at->release(&prepared);
    one->sustained_us += us / n_rounds;
    return st;
}

/* A burst on a card that rested is faster than a long run on one that is limited by its
 * power, so what is slower in a burst than another alternative in a long run has lost. */
static bool is_worth_sustaining(const contest *c)
{
    return c->selector->measure && c->n > 0 && is_long(c->finalist[0].us) &&
           (c->forced || !is_known(c->best_us) || c->finalist[0].us < c->best_us);
}

static void leave_out(contest *c, int i)
{
    c->n--;
    for (; i < c->n; i++)
        c->finalist[i] = c->finalist[i + 1];
}

/* One that does not run any more is left out; *why: the last of these. */
static gx_status sustain_all(contest *c, int n_rounds, gx_error *why)
{
    for (int i = c->n - 1; i >= 0; i--) {
        const gx_status st = sustain(c, &c->finalist[i], n_rounds, why);

        if (st != GX_OK && is_machines(c, st))
            return st;
        if (st != GX_OK)
            leave_out(c, i);
    }
    return GX_OK;
}

static gx_status take_sustained(contest *c, gx_error *err)
{
    const int n_rounds = c->n > 1 ? ROUNDS : 1;
    int best = 0;
    gx_error why = { 0 };
    gx_status st = GX_OK;

    if (!is_worth_sustaining(c))
        return GX_OK;
    for (int round = 0; round < n_rounds && st == GX_OK; round++)
        st = sustain_all(c, n_rounds, &why);
    if (st != GX_OK || c->n == 0)
        return GX_FAIL_NATIVE(err, why.status, why.native, "%s", why.message);
    for (int i = 1; i < c->n; i++) {
        if (c->finalist[i].sustained_us < c->finalist[best].sustained_us)
            best = i;
    }
    c->finalist[0] = c->finalist[best];
    c->finalist[0].us = c->finalist[0].sustained_us;
    return GX_OK;
}

/* --- the candidate --- */

static const char *keep_text(const gx_selector *selector, const char *text)
{
    const char *kept = gx_arena_text(selector->arena, text);

    return kept ? kept : "refused";
}

/* A call that failed leaves this alternative out, unless the machine is to blame. */
static gx_status settle(const contest *c, gx_status st, const gx_error *why,
                        gx_candidate *candidate, gx_error *err)
{
    if (is_machines(c, st))
        return GX_FAIL_NATIVE(err, st, why->native, "%s: %s", c->at->name, why->message);
    candidate->refused = keep_text(c->selector, why->message);
    return GX_OK;
}

static void accept(gx_candidate *candidate, const accepted *one)
{
    candidate->refused = NULL;
    candidate->us = one->us;
    candidate->n_launches = one->n_launches;
    candidate->workspace_bytes = one->workspace_bytes;
    candidate->has_algo = one->has_algo;
    candidate->over_tolerance = one->over_tolerance[0] != '\0';
    memcpy(candidate->algo, one->algo, sizeof candidate->algo);
}

gx_status gx_bench_examine(const gx_selector *selector, const gx_site *site,
                           gx_candidate *candidate, double best_us, gx_error *err)
{
    contest c = {
        .bench = selector->user,
        .selector = selector,
        .at = candidate->alternative,
        .forced = gx_is_forced(selector->force, candidate->alternative->name),
        .best_us = best_us,
    };
    gx_error why = { 0 };

    if (c.bench->site != site)
        GX_TRY(gx_bench_enter(c.bench, selector, site, err));
    gx_status st = try_all(&c, &why);
    if (st == GX_OK)
        st = take_sustained(&c, &why);
    if (st != GX_OK)
        return settle(&c, st, &why, candidate, err);
    if (c.n > 0)
        accept(candidate, &c.finalist[0]);
    else
        candidate->refused = keep_text(selector, c.refused);
    return GX_OK;
}
