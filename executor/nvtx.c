/* NVTX ranges of the domain "gexec": names, categories, colours. */
#include "nvtx.h"

#if GX_HAVE_NVTX

#include <pthread.h>

#include <nvtx3/nvToolsExt.h>

typedef struct gx_range_style {
    const char *category; /* NULL: none */
    uint32_t colour;      /* ARGB */
} gx_range_style;

static const gx_range_style styles[GX_N_RANGE_KINDS] = {
    [GX_RANGE_PLAIN] = { NULL, 0xff9e9e9e },            /* grey */
    [GX_RANGE_CAPTURE] = { "capture", 0xff8e24aa },     /* purple */
    [GX_RANGE_GEMM] = { "gemm", 0xff1e88e5 },           /* blue */
    [GX_RANGE_EPILOGUE] = { "epilogue", 0xff00acc1 },   /* cyan */
    [GX_RANGE_BWD] = { "bwd", 0xfffb8c00 },             /* orange */
    [GX_RANGE_OPTIMIZER] = { "optimizer", 0xff43a047 }, /* green */
    [GX_RANGE_COPY] = { "copy", 0xfffdd835 },           /* yellow */
    [GX_RANGE_REPLAY] = { "replay", 0xffe53935 },       /* red */
};

typedef enum gx_fixed {
    FIXED_STEP,
    FIXED_FORWARD,
    FIXED_BACKWARD,
    FIXED_OPTIMIZER,
    FIXED_CAPTURE,
    FIXED_REPLAY,
    FIXED_MEASURED,
    N_FIXED
} gx_fixed;

static const char *const fixed_names[N_FIXED] = { "step",      "forward", "backward",
                                                  "optimizer", "capture", "replay",
                                                  "measured" };

/* The process's one domain, and the texts that every program uses. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t fixed[N_FIXED];

static void open_domain(void)
{
    domain = nvtxDomainCreateA("gexec");
    for (uint32_t i = 0; i < GX_N_RANGE_KINDS; i++)
        if (styles[i].category)
            nvtxDomainNameCategoryA(domain, i, styles[i].category);
    for (int i = 0; i < N_FIXED; i++)
        fixed[i] = nvtxDomainRegisterStringA(domain, fixed_names[i]);
}

static void push(gx_range_kind kind, nvtxStringHandle_t string, int64_t payload)
{
    nvtxEventAttributes_t event = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = styles[kind].category ? (uint32_t)kind : 0,
        .colorType = NVTX_COLOR_ARGB,
        .color = styles[kind].colour,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = string,
    };

    if (payload >= 0) {
        event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
        event.payload.llValue = payload;
    }
    (void)nvtxDomainRangePushEx(domain, &event);
}

/* Ranges that do not follow the making of a program, which opens the domain. */
static void push_fixed(gx_range_kind kind, gx_fixed name)
{
    (void)pthread_once(&once, open_domain);
    push(kind, fixed[name], -1);
}

const void *gx_range_register(const char *text)
{
    (void)pthread_once(&once, open_domain);
    return nvtxDomainRegisterStringA(domain, text);
}

void gx_range_capture_begin(void)
{
    push_fixed(GX_RANGE_CAPTURE, FIXED_CAPTURE);
}

void gx_range_replay_begin(void)
{
    push(GX_RANGE_REPLAY, fixed[FIXED_REPLAY], -1);
}

void gx_range_end(void)
{
    (void)nvtxDomainRangePop(domain);
}

static bool phase_range(int phase, gx_range_kind *kind, gx_fixed *name)
{
    switch (phase) {
    case GX_PHASE_FORWARD:
        *kind = GX_RANGE_PLAIN;
        *name = FIXED_FORWARD;
        return true;
    case GX_PHASE_BACKWARD:
        *kind = GX_RANGE_BWD;
        *name = FIXED_BACKWARD;
        return true;
    case GX_PHASE_OPTIMIZER:
        *kind = GX_RANGE_OPTIMIZER;
        *name = FIXED_OPTIMIZER;
        return true;
    default: /* counters and the log stand in the step itself */
        return false;
    }
}

static void close_phase(gx_step_ranges *ranges)
{
    gx_range_kind kind;
    gx_fixed name;

    if (phase_range(ranges->phase, &kind, &name))
        gx_range_end();
    ranges->phase = -1;
}

void gx_ranges_step_begin(gx_step_ranges *ranges)
{
    ranges->phase = -1;
    push_fixed(GX_RANGE_PLAIN, FIXED_STEP);
}

void gx_ranges_unit_begin(gx_step_ranges *ranges, const gx_unit *unit,
                          const gx_bound_unit *bound)
{
    gx_range_kind kind;
    gx_fixed name;

    if (ranges->phase != (int)unit->phase) {
        close_phase(ranges);
        ranges->phase = (int)unit->phase;
        if (phase_range(ranges->phase, &kind, &name))
            push_fixed(kind, name);
    }
    /* The handle came from NVTX as a pointer to what only the tool writes. */
    push(bound->kind, (nvtxStringHandle_t)(uintptr_t)bound->range, unit->first_node);
}

void gx_ranges_unit_end(void)
{
    gx_range_end();
}

void gx_ranges_step_end(gx_step_ranges *ranges)
{
    close_phase(ranges);
    gx_range_end();
}

void gx_measured_begin(void)
{
    push_fixed(GX_RANGE_PLAIN, FIXED_MEASURED);
}

void gx_measured_end(void)
{
    gx_range_end();
}

bool gx_has_nvtx(void)
{
    return true;
}

#else

void gx_measured_begin(void)
{
}

void gx_measured_end(void)
{
}

bool gx_has_nvtx(void)
{
    return false;
}

#endif
