/* The command line: one table of commands, one of flags, and what they fill. */
#ifndef GX_ARGS_H
#define GX_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gexec/gexec.h>

#include "model_text.h"

/* Exit statuses that no gx_status stands for; the others are gx_status_exit's. */
enum {
    GX_EXIT_OK = 0,
    GX_EXIT_NO = 1,
    GX_EXIT_USAGE = 2,
    GX_EXIT_LACKS = 3,
    GX_EXIT_FAILED = 4,
    GX_EXIT_INTERRUPTED = 130
};

enum { GX_MAX_FLAGS = 64 };

/* Values of "name=value" flags in the order given; name is NULL for a bare value. */
typedef struct gx_pairs {
    gx_set *items;
    size_t n;
} gx_pairs;

typedef enum gx_target { GX_TARGET_ANY, GX_TARGET_CPU, GX_TARGET_GPU } gx_target;
typedef enum gx_eval_when { GX_EVAL_EPOCH, GX_EVAL_END, GX_EVAL_NEVER } gx_eval_when;
typedef enum gx_stage {
    GX_STAGE_ALL,
    GX_STAGE_DOCUMENT,
    GX_STAGE_GRAPH,
    GX_STAGE_SELECTION,
    GX_STAGE_LAYOUT,
    GX_STAGE_PROGRAM
} gx_stage;

typedef struct gx_command gx_command;

/* Numbers that were not given are -1. Everything lives until gx_args_free. */
typedef struct gx_args {
    const gx_command *command;
    int argc; /* as main() got them */
    char **argv;
    const char **names; /* what stands beside the flags: MODEL, DIR, OP */
    size_t n_names;
    gx_model_text *model; /* what names[0] holds, read when it is first asked for */
    char **text;          /* copies that "name=value" was cut in */
    size_t n_text;

    const char *given[GX_MAX_FLAGS]; /* by flag: its value, of what may stand once */
    bool help, quiet, verbose;
    gx_pairs sets, inputs, outs;
    bool *made;       /* by `outs`: a folder that this process made and may remove */
    const char *json; /* "-": standard output */
    bool graph, eager, exact, unfused, no_cache, nsys_window, blocks, stream, new_state;
    int target; /* gx_target */
    int64_t gpu;
    uint64_t seed;
    int64_t steps, epochs;
    int64_t steps_per_launch; /* or GX_STEPS_AUTO */
    int step_loop;            /* gx_choice */
    const char *plan, *force, *resume;
    int64_t lanes;
    int programmatic; /* gx_choice */
    int order;        /* gx_node_order */
    int skip;         /* gx_choice: on is "if", off "predicate" */
    int evaluate;     /* gx_eval_when */
    const char *loss_out;
    int64_t pairs, block, samples;
    int stage; /* gx_stage */
    bool dot, yaml, markdown, measure, pdl_report;
    const char *csv, *svg, *step, *within, *costs, *chrome, *html;
    int64_t wait, warmup, active, repeat;
    int64_t top;
} gx_args;

struct gx_command {
    const char *name;
    const char *operands; /* "MODEL", "[OP]", "" */
    const char *summary;
    const char *more; /* what --help says besides; may be "" */
    const char *example;
    unsigned bit;
    int (*run)(const gx_args *args);
};

/* In the order of --help; i beyond the end gives NULL. */
const gx_command *gx_command_at(size_t i);

/* Parses argv[1..]. Where it returns false everything has been said on standard error and
 * the exit status is GX_EXIT_USAGE. args->command is NULL for a bare --help or --version.
 */
bool gx_args_parse(gx_args *args, int argc, char **argv);
void gx_args_free(gx_args *args);

/* Help of the program, or of one command. */
void gx_help_print(FILE *out);
void gx_command_help_print(FILE *out, const gx_command *command);

/* --- messages of a command, on standard error --- */

/* "gexec run: message"; the status. */
int gx_say_usage(const gx_args *args, const char *format, ...) GX_PRINTF(2, 3);
/* A remark; nothing under -q. */
void gx_say(const gx_args *args, const char *format, ...) GX_PRINTF(2, 3);
/* The message of a failed call, with what to do about it where that is known, and the
 * exit status for it. An empty message was said before. */
int gx_say_error(const gx_args *args, const gx_error *err);

/* What to do about a machine that cannot, a line. */
void gx_say_lack(const gx_args *args);

/* Of `names` (NULL-terminated) the one nearest to `name`, or NULL where none is near. */
const char *gx_near_name(const char *name, const char *const *names);

/* A result is for standard output, "-", where it stands alone. */
bool gx_stdout_is_taken(const gx_args *args);
/* Flushes standard output; true when all of it was written, else it is said. */
bool gx_stdout_finish(const gx_args *args);

int gx_cmd_run(const gx_args *args);
int gx_cmd_compare(const gx_args *args);
int gx_cmd_check(const gx_args *args);
int gx_cmd_plan(const gx_args *args);
int gx_cmd_sweep(const gx_args *args);
int gx_cmd_profile(const gx_args *args);
int gx_cmd_nsys(const gx_args *args);
int gx_cmd_ops(const gx_args *args);
int gx_cmd_doctor(const gx_args *args);
int gx_cmd_init(const gx_args *args);

#endif
