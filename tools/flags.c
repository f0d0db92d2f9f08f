/* The table of flags. */
#include "flags.h"

enum {
    MODEL = GX_CMD_RUN | GX_CMD_COMPARE | GX_CMD_CHECK | GX_CMD_PLAN | GX_CMD_SWEEP |
            GX_CMD_PROFILE,
    TIMED = GX_CMD_COMPARE | GX_CMD_SWEEP | GX_CMD_PROFILE,
    LAUNCHES = GX_CMD_RUN | TIMED | GX_CMD_PLAN,
    STEPS = GX_CMD_RUN | GX_CMD_CHECK | TIMED,
    ANY = MODEL | GX_CMD_OPS | GX_CMD_DOCTOR | GX_CMD_INIT | GX_CMD_NSYS
};

/* In the order of the enumerations that they fill. */
static const char *const targets[] = { "auto", "cpu", "gpu", NULL };
static const char *const choices[] = { "auto", "on", "off", NULL };
static const char *const orders[] = { "auto", "derived", "data-first", NULL };
static const char *const skips[] = { "auto", "if", "predicate", NULL };
static const char *const automatic[] = { "auto", NULL }; /* GX_STEPS_AUTO */
static const char *const evaluations[] = { "epoch", "end", "never", NULL };
static const char *const stages[] = { "all",    "document", "graph", "selection",
                                      "layout", "program",  NULL };

#define AT(member) offsetof(gx_args, member)
#define SWITCH GX_FLAG_SWITCH, AT
#define NO_RANGE 0, 0, NULL

static const gx_flag flags[] = {
    { "--graph", NULL, NULL, SWITCH(graph), NO_RANGE, GX_CMD_RUN,
      "replay a captured CUDA graph" },
    { "--eager", NULL, NULL, SWITCH(eager), NO_RANGE, GX_CMD_RUN,
      "launch op by op on the GPU" },
    { "--device", NULL, "auto|cpu|gpu", GX_FLAG_CHOICE, AT(target), 0, 0, targets, MODEL,
      "where to run; auto: a GPU where there is one" },
    { "--exact", NULL, NULL, SWITCH(exact), NO_RANGE, GX_CMD_RUN,
      "on the CPU: keep every tensor in double, and write f8; with --device cpu" },
    { "--gpu", NULL, "N", GX_FLAG_NUMBER, AT(gpu), 0, 1023, NULL, MODEL | GX_CMD_DOCTOR,
      "which GPU, from 0" },
    { "--set", NULL, "DIM=EXPR", GX_FLAG_PAIR, AT(sets), NO_RANGE, MODEL,
      "override a dim of the model; may be repeated; sweep: a list, A,B,..." },
    { "--in", NULL, "NAME=F.npy", GX_FLAG_PAIR, AT(inputs), NO_RANGE, STEPS,
      "value of an input, a parameter or a state" },
    { "--steps", NULL, "N", GX_FLAG_NUMBER, AT(steps), 1, INT64_C(1) << 40, NULL,
      GX_CMD_RUN | GX_CMD_COMPARE | GX_CMD_SWEEP,
      "run: steps of this run, not epochs; compare, sweep: steps behind the bits" },
    { "--epochs", NULL, "N", GX_FLAG_NUMBER, AT(epochs), 1, 1000000000, NULL, GX_CMD_RUN,
      "passes over the training rows, instead of the model's" },
    { "--evaluate", NULL, "epoch|end|never", GX_FLAG_CHOICE, AT(evaluate), 0, 0,
      evaluations, GX_CMD_RUN, "when the held-out rows are gone through" },
    { "--seed", NULL, "N", GX_FLAG_SEED, AT(seed), NO_RANGE, STEPS,
      "of initial values, generated inputs and the shuffle (default 1)" },
    { "--resume", NULL, "DIR", GX_FLAG_STRING, AT(resume), NO_RANGE, GX_CMD_RUN,
      "go on from what --out DIR wrote: parameters, state, plans" },
    { "--new-state", NULL, NULL, SWITCH(new_state), NO_RANGE, GX_CMD_RUN,
      "with --resume: what has no file there starts anew, but for parameters" },
    { "--out", NULL, "DIR|NAME=F.npy", GX_FLAG_PAIR_OR_BARE, AT(outs), NO_RANGE,
      GX_CMD_RUN, "write parameters, state, outputs and plans to DIR, or one tensor" },
    { "--loss-out", NULL, "F.npy", GX_FLAG_STRING, AT(loss_out), NO_RANGE, GX_CMD_RUN,
      "write the loss of every step (f8)" },
    { "--blocks", NULL, NULL, SWITCH(blocks), NO_RANGE, GX_CMD_RUN,
      "serve: read `time N`, `losses N`, `reset`, `quit` from stdin" },
    { "--pairs", NULL, "N", GX_FLAG_NUMBER, AT(pairs), 3, 100000, NULL, TIMED,
      "paired blocks (default 25)" },
    { "--block", NULL, "N", GX_FLAG_NUMBER, AT(block), 1, 1000000, NULL, TIMED,
      "steps of a block (default: about 10 ms of them)" },
    { "--samples", NULL, "N", GX_FLAG_NUMBER, AT(samples), 0, 1000000, NULL, GX_CMD_CHECK,
      "elements a parameter to difference (default 4)" },
    { "--stage", NULL, "STAGE", GX_FLAG_CHOICE, AT(stage), 0, 0, stages, GX_CMD_PLAN,
      "all, document, graph, selection, layout or program" },
    { "--dot", NULL, NULL, SWITCH(dot), NO_RANGE, GX_CMD_PLAN,
      "the graph in the DOT language, nothing else" },
    { "--yaml", NULL, NULL, SWITCH(yaml), NO_RANGE, GX_CMD_PLAN,
      "the expanded model, which loads again, nothing else" },
    { "--plan", NULL, "FILE", GX_FLAG_STRING, AT(plan), NO_RANGE, MODEL,
      "plan to obey, written first where there is none" },
    { "--stream", NULL, NULL, SWITCH(stream), NO_RANGE, MODEL,
      "keep the data in host memory and copy each batch ahead of its step" },
    { "--unfused", NULL, NULL, SWITCH(unfused), NO_RANGE,
      GX_CMD_RUN | GX_CMD_CHECK | GX_CMD_PLAN, "run every op by itself" },
    { "--force", NULL, "ALT[,ALT]", GX_FLAG_STRING, AT(force), NO_RANGE, MODEL,
      "take these alternatives wherever they apply" },
    { "--lanes", NULL, "N", GX_FLAG_NUMBER, AT(lanes), 1, 3, NULL, MODEL,
      "streams, 1 to 3 (default: as measured)" },
    { "--pdl", NULL, "auto|on|off", GX_FLAG_CHOICE, AT(programmatic), 0, 0, choices,
      MODEL, "programmatic dependent launch (default: as measured)" },
    { "--order", NULL, "auto|derived|data-first", GX_FLAG_CHOICE, AT(order), 0, 0, orders,
      MODEL,
      "of the backward pass: layer by layer, or data gradients first (default: as "
      "measured)" },
    { "--pdl-report", NULL, NULL, SWITCH(pdl_report), NO_RANGE, GX_CMD_PLAN,
      "what each programmatic edge gains, measured, and no stages" },
    { "--no-cache", NULL, NULL, SWITCH(no_cache), NO_RANGE, MODEL,
      "neither read nor write the plan cache" },
    { "--steps-per-launch", NULL, "N|auto", GX_FLAG_NUMBER, AT(steps_per_launch), 1,
      GX_MAX_STEPS_PER_LAUNCH, automatic, LAUNCHES,
      "steps in one graph launch; auto: as measured (default 1)" },
    { "--step-loop", NULL, "auto|on|off", GX_FLAG_CHOICE, AT(step_loop), 0, 0, choices,
      LAUNCHES,
      "those steps as a loop on the device, or unrolled (default: unrolled, or "
      "with N auto as measured)" },
    { "--skip", NULL, "auto|if|predicate", GX_FLAG_CHOICE, AT(skip), 0, 0, skips,
      LAUNCHES,
      "how a graph skips an update that overflowed: by an IF node, or each kernel for "
      "itself (default: as measured)" },
    { "--nsys-window", NULL, NULL, SWITCH(nsys_window), NO_RANGE,
      GX_CMD_RUN | GX_CMD_COMPARE, "open a window for nsys profile -c cudaProfilerApi" },
    { "--step-range", NULL, "NAME", GX_FLAG_STRING, AT(step), NO_RANGE, GX_CMD_NSYS,
      "ranges that are steps (default: step, ProfilerStep, gexec's replay)" },
    { "--within", NULL, "NAME", GX_FLAG_STRING, AT(within), NO_RANGE, GX_CMD_NSYS,
      "count only what is launched inside ranges of this name; -: everything" },
    { "--costs", NULL, "FILE", GX_FLAG_STRING, AT(costs), NO_RANGE, GX_CMD_NSYS,
      "what a graph costs on that card, for what graphs would buy" },
    { "--wait", NULL, "N", GX_FLAG_NUMBER, AT(wait), 0, 1000000, NULL, GX_CMD_PROFILE,
      "steps of a cycle before the tracing tool warms up (default 0)" },
    { "--warmup", NULL, "N", GX_FLAG_NUMBER, AT(warmup), 0, 1000000, NULL, GX_CMD_PROFILE,
      "steps of a cycle that run and are not recorded (default 3)" },
    { "--active", NULL, "N", GX_FLAG_NUMBER, AT(active), 1, 1000000, NULL, GX_CMD_PROFILE,
      "steps of a cycle that are recorded (default 10)" },
    { "--repeat", NULL, "N", GX_FLAG_NUMBER, AT(repeat), 1, 10000, NULL, GX_CMD_PROFILE,
      "cycles (default 1)" },
    { "--chrome", NULL, "FILE", GX_FLAG_STRING, AT(chrome), NO_RANGE,
      GX_CMD_NSYS | GX_CMD_PROFILE,
      "trace for ui.perfetto.dev; -: standard output, alone" },
    { "--html", NULL, "FILE", GX_FLAG_STRING, AT(html), NO_RANGE,
      GX_CMD_NSYS | GX_CMD_PROFILE, "report as one page; -: standard output, alone" },
    { "--top", NULL, "N", GX_FLAG_NUMBER, AT(top), 1, 1000000, NULL,
      GX_CMD_NSYS | GX_CMD_PROFILE, "rows of a table (default 15)" },
    { "--csv", NULL, "FILE", GX_FLAG_STRING, AT(csv), NO_RANGE,
      GX_CMD_NSYS | GX_CMD_SWEEP | GX_CMD_PROFILE,
      "every gap, a row a size, or the ops; -: standard output, alone" },
    { "--svg", NULL, "FILE", GX_FLAG_STRING, AT(svg), NO_RANGE, GX_CMD_SWEEP,
      "picture of the time by size; -: standard output, alone" },
    { "--measure", NULL, NULL, SWITCH(measure), NO_RANGE, GX_CMD_DOCTOR,
      "measure the GPU's ceilings and keep them; some seconds, on an idle card" },
    { "--markdown", NULL, NULL, SWITCH(markdown), NO_RANGE, GX_CMD_OPS,
      "the catalogue as the reference page has it" },
    { "--json", NULL, "FILE", GX_FLAG_STRING, AT(json), NO_RANGE,
      MODEL | GX_CMD_OPS | GX_CMD_DOCTOR | GX_CMD_NSYS,
      "result as JSON; -: standard output, alone" },
    { "--quiet", "-q", NULL, SWITCH(quiet), NO_RANGE, ANY, "no progress and no remarks" },
    { "--verbose", "-v", NULL, SWITCH(verbose), NO_RANGE, ANY, "say more" },
    { "--help", "-h", NULL, SWITCH(help), NO_RANGE, ANY, "this text" },
};

_Static_assert(sizeof flags / sizeof flags[0] <= GX_MAX_FLAGS, "gx_args.given");

const gx_flag *gx_flag_at(size_t i)
{
    return i < sizeof flags / sizeof flags[0] ? &flags[i] : NULL;
}
