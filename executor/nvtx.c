/* NVTX ranges of the domain "gexec": names, categories, colours. */
#include "nvtx.h"

#if GX_HAVE_NVTX

#include <pthread.h>

#include <nvtx3/nvToolsExt.h>

#include "ranges.h"

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

/* Of the ranges that every program has. */
static const gx_range_kind kinds[GX_N_NAMED_RANGES] = {
    [GX_NAMED_STEP] = GX_RANGE_PLAIN,      [GX_NAMED_FORWARD] = GX_RANGE_PLAIN,
    [GX_NAMED_BACKWARD] = GX_RANGE_BWD,    [GX_NAMED_OPTIMIZER] = GX_RANGE_OPTIMIZER,
    [GX_NAMED_CAPTURE] = GX_RANGE_CAPTURE, [GX_NAMED_REPLAY] = GX_RANGE_REPLAY,
    [GX_NAMED_MEASURED] = GX_RANGE_PLAIN,
};

/* The process's one domain, and the texts that every program uses. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t named[GX_N_NAMED_RANGES];

static void open_domain(void)
{
    domain = nvtxDomainCreateA("gexec");
    for (uint32_t i = 0; i < GX_N_RANGE_KINDS; i++)
        if (styles[i].category)
            nvtxDomainNameCategoryA(domain, i, styles[i].category);
    for (int i = 0; i < GX_N_NAMED_RANGES; i++)
        named[i] = nvtxDomainRegisterStringA(domain, gx_range_names[i]);
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

void gx_nvtx_open(void)
{
    (void)pthread_once(&once, open_domain);
}

const void *gx_nvtx_register(const char *text)
{
    return nvtxDomainRegisterStringA(domain, text);
}

void gx_nvtx_begin(gx_named_range name)
{
    push(kinds[name], named[name], -1);
}

void gx_nvtx_begin_unit(const gx_bound_unit *unit, int64_t first_node)
{
    /* The handle came from NVTX as a pointer to what only the tool writes. */
    push(unit->kind, (nvtxStringHandle_t)(uintptr_t)unit->range, first_node);
}

void gx_nvtx_end(void)
{
    (void)nvtxDomainRangePop(domain);
}

/* May come before any program is made. */
void gx_measured_begin(void)
{
    gx_nvtx_open();
    gx_nvtx_begin(GX_NAMED_MEASURED);
}

void gx_measured_end(void)
{
    gx_nvtx_end();
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
