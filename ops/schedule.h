/* The kinds of schedule, and which settings each of them has. */
#ifndef GX_SCHEDULE_H
#define GX_SCHEDULE_H

enum {
    GX_SCHEDULE_CONSTANT,
    GX_SCHEDULE_DECAY, /* "step" */
    GX_SCHEDULE_COSINE,
    GX_SCHEDULE_LINEAR
};

typedef struct gx_schedule_kind {
    const char *name;
    const char *needs[3]; /* settings that must be there; ends with NULL */
    const char *may[3];   /* and those that may */
} gx_schedule_kind;

extern const gx_schedule_kind gx_schedule_kinds[]; /* ends with name NULL */

#endif
