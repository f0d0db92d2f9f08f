/* What a tool that listens to NVTX is: a library that NVTX loads, which writes each call
 * to the file that GX_NVTX_LOG names.
 *
 *     domain D NAME
 *     category D N NAME
 *     string D TEXT
 *     push D CATEGORY COLOUR PAYLOAD TEXT    PAYLOAD is - where there is none
 *     pop D
 *     other                                  any other call */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

enum { MAX_STRINGS = 4096 };

static FILE *out;
static uintptr_t n_domains;
static char *strings[MAX_STRINGS]; /* a handle is the index plus one */
static uintptr_t n_strings;

static uintptr_t number_of(nvtxDomainHandle_t domain)
{
    return (uintptr_t)domain;
}

static nvtxDomainHandle_t NVTX_API domain_create(const char *name)
{
    n_domains++;
    fprintf(out, "domain %" PRIuPTR " %s\n", n_domains, name);
    fflush(out);
    return (nvtxDomainHandle_t)n_domains;
}

static void NVTX_API name_category(nvtxDomainHandle_t domain, uint32_t category,
                                   const char *name)
{
    fprintf(out, "category %" PRIuPTR " %" PRIu32 " %s\n", number_of(domain), category,
            name);
    fflush(out);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain,
                                                   const char *text)
{
    if (n_strings == MAX_STRINGS)
        return NULL;
    strings[n_strings] = malloc(strlen(text) + 1);
    if (strings[n_strings] == NULL)
        return NULL;
    memcpy(strings[n_strings], text, strlen(text) + 1);
    n_strings++;
    fprintf(out, "string %" PRIuPTR " %s\n", number_of(domain), text);
    fflush(out);
    return (nvtxStringHandle_t)n_strings;
}

static const char *text_of(const nvtxEventAttributes_t *event)
{
    const uintptr_t handle = (uintptr_t)event->message.registered;

    if (event->messageType != NVTX_MESSAGE_TYPE_REGISTERED)
        return "(not registered)";
    return handle >= 1 && handle <= n_strings ? strings[handle - 1] : "(unknown)";
}

static int NVTX_API range_push(nvtxDomainHandle_t domain,
                               const nvtxEventAttributes_t *event)
{
    char payload[32] = "-";

    if (event->payloadType == NVTX_PAYLOAD_TYPE_INT64)
        snprintf(payload, sizeof payload, "%" PRId64, event->payload.llValue);
    else if (event->payloadType != NVTX_PAYLOAD_UNKNOWN)
        snprintf(payload, sizeof payload, "?");
    fprintf(out, "push %" PRIuPTR " %" PRIu32 " %08" PRIx32 " %s %s\n", number_of(domain),
            event->category, event->colorType == NVTX_COLOR_ARGB ? event->color : 0,
            payload, text_of(event));
    fflush(out);
    return 0;
}

static int NVTX_API range_pop(nvtxDomainHandle_t domain)
{
    fprintf(out, "pop %" PRIuPTR "\n", number_of(domain));
    fflush(out);
    return 0;
}

static int NVTX_API other(void)
{
    fprintf(out, "other\n");
    fflush(out);
    return 0;
}

static void set(NvtxFunctionTable table, unsigned size, unsigned id,
                NvtxFunctionPointer function)
{
    if (id < size && table[id] != NULL)
        *table[id] = function;
}

static void set_all(NvtxFunctionTable table, unsigned size)
{
    for (unsigned id = 1; id < size; id++)
        set(table, size, id, (NvtxFunctionPointer)other);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const char *path = getenv("GX_NVTX_LOG");
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core = NULL;
    NvtxFunctionTable core2 = NULL;
    unsigned n_core = 0;
    unsigned n_core2 = 0;

    if (path == NULL || callbacks == NULL || callbacks->struct_size < sizeof *callbacks ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &n_core) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &n_core2))
        return 0;
    if (out == NULL)
        out = fopen(path, "w");
    if (out == NULL)
        return 0;
    set_all(core, n_core);
    set_all(core2, n_core2);
    set(core2, n_core2, NVTX_CBID_CORE2_DomainCreateA,
        (NvtxFunctionPointer)domain_create);
    set(core2, n_core2, NVTX_CBID_CORE2_DomainNameCategoryA,
        (NvtxFunctionPointer)name_category);
    set(core2, n_core2, NVTX_CBID_CORE2_DomainRegisterStringA,
        (NvtxFunctionPointer)register_string);
    set(core2, n_core2, NVTX_CBID_CORE2_DomainRangePushEx,
        (NvtxFunctionPointer)range_push);
    set(core2, n_core2, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)range_pop);
    return 1;
}
