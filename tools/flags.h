/* The table of flags. */
#ifndef GX_FLAGS_H
#define GX_FLAGS_H

#include "args.h"

/* Which commands take a flag. */
enum {
    GX_CMD_RUN = 1,
    GX_CMD_COMPARE = 2,
    GX_CMD_CHECK = 4,
    GX_CMD_PLAN = 8,
    GX_CMD_OPS = 16,
    GX_CMD_DOCTOR = 32,
    GX_CMD_INIT = 64,
    GX_CMD_NSYS = 128,
    GX_CMD_SWEEP = 256,
    GX_CMD_PROFILE = 512
};

typedef enum gx_flag_kind {
    GX_FLAG_SWITCH, /* bool */
    GX_FLAG_STRING, /* const char * */
    GX_FLAG_NUMBER, /* int64_t in [low, high]; choices[i], where there are any: -1 - i */
    GX_FLAG_SEED,   /* uint64_t */
    GX_FLAG_CHOICE, /* int: index into choices */
    GX_FLAG_PAIR,   /* gx_pairs; "name=value", once a name */
    GX_FLAG_PAIR_OR_BARE
} gx_flag_kind;

typedef struct gx_flag {
    const char *name;   /* "--steps" */
    const char *letter; /* "-q", or NULL */
    const char *value;  /* "N", as help shows it; NULL: a switch */
    gx_flag_kind kind;
    size_t offset; /* in gx_args */
    int64_t low, high;
    const char *const *choices;
    unsigned commands;
    const char *help;
} gx_flag;

/* i beyond the end gives NULL. */
const gx_flag *gx_flag_at(size_t i);

#endif
