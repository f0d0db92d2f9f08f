/* Looking CUPTI up, and what its errors mean. */
#define _GNU_SOURCE /* dladdr */
#include "profile_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#ifndef GX_CUPTI_FOLDERS
#define GX_CUPTI_FOLDERS ""
#endif

enum { NAME_SIZE = 32, CUDA_MAJOR = CUDA_VERSION / 1000 };

/* A function by name; dlsym's object pointer becomes a function pointer bit by bit. */
static bool find(void *library, const char *name, void *function)
{
    void *const symbol = dlsym(library, name);

    if (symbol)
        memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The file that the code of `function` (a pointer to a function pointer) came from. */
static const char *file_of(const void *function, Dl_info *info)
{
    const void *code;

    memcpy(&code, function, sizeof code);
    return dladdr(code, info) && info->dli_fname ? info->dli_fname : "";
}

static void *load_from(const char *folder, size_t length, const char *name)
{
    char path[GX_CUPTI_PATH];

    if (length == 0 || snprintf(path, sizeof path, "%.*s/%s", (int)length, folder,
                                name) >= (int)sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* `folders` are parted by colons. */
static void *load_from_any(const char *folders, const char *name)
{
    void *library = NULL;

    while (*folders && !library) {
        const size_t length = strcspn(folders, ":");

        library = load_from(folders, length, name);
        folders += length;
        folders += *folders == ':';
    }
    return library;
}

static void *load_beside_cublaslt(const char *name)
{
    size_t (*const neighbour)(void) = cublasLtGetVersion;
    Dl_info info;
    const char *file = file_of(&neighbour, &info);
    const char *slash = strrchr(file, '/');

    return slash ? load_from(file, (size_t)(slash - file), name) : NULL;
}

static gx_status load(gx_cupti *cupti, gx_error *err)
{
    const char *named = getenv("GEXEC_CUPTI");
    char name[NAME_SIZE];

    if (named && *named) {
        cupti->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        return cupti->library
                   ? GX_OK
                   : GX_FAIL(err, GX_ERR_UNSUPPORTED,
                             "no CUPTI: GEXEC_CUPTI names a file that cannot be loaded: "
                             "%s",
                             dlerror());
    }
    snprintf(name, sizeof name, "libcupti.so.%d", (int)CUDA_MAJOR);
    cupti->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!cupti->library)
        cupti->library = load_from_any(GX_CUPTI_FOLDERS, name);
    if (!cupti->library)
        cupti->library = load_from_any("/usr/local/cuda/extras/CUPTI/lib64", name);
    if (!cupti->library)
        cupti->library = load_beside_cublaslt(name);
    if (!cupti->library)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED,
                       "no CUPTI: %s was not found; install CUDA's profiling tools, or "
                       "name the file in the environment variable GEXEC_CUPTI",
                       name);
    return GX_OK;
}

static gx_status find_functions(gx_cupti *cupti, gx_error *err)
{
    const char *missing = NULL;

#define FIND(name)                                              \
    if (!missing && !find(cupti->library, #name, &cupti->name)) \
        missing = #name;
    GX_CUPTI_FUNCTIONS(FIND)
#undef FIND
#ifdef CUPTI_SUBSCRIBER_NAME_MAX_LEN
    (void)find(cupti->library, "cuptiSubscribe_v2", &cupti->cuptiSubscribe_v2);
#endif
    if (missing)
        return GX_FAIL(
            err, GX_ERR_UNSUPPORTED,
            "the CUPTI that was found lacks %s: it is too old or no CUPTI; name "
            "that of CUDA %d in GEXEC_CUPTI",
            missing, (int)CUDA_MAJOR);
    return GX_OK;
}

static gx_status check_version(gx_cupti *cupti, gx_error *err)
{
    Dl_info info;

    snprintf(cupti->path, sizeof cupti->path, "%s",
             file_of(&cupti->cuptiGetVersion, &info));
    GX_TRY(GX_CUPTI(cupti, cuptiGetVersion, (&cupti->version), err));
    if (cupti->version < CUPTI_API_VERSION)
        return GX_FAIL(
            err, GX_ERR_UNSUPPORTED,
            "%s is CUPTI of API version %u, older than %d that gexec was built "
            "with: its records cannot be read; name a newer one in GEXEC_CUPTI",
            cupti->path, (unsigned)cupti->version, CUPTI_API_VERSION);
    return GX_OK;
}

gx_status gx_cupti_load(gx_cupti *cupti, gx_error *err)
{
    *cupti = (gx_cupti){ .library = NULL };
    GX_TRY(load(cupti, err));
    gx_status st = find_functions(cupti, err);
    if (st == GX_OK)
        st = check_version(cupti, err);
    if (st != GX_OK) {
        dlclose(cupti->library);
        cupti->library = NULL;
    }
    return st;
}

/* --- errors --- */

static const char *advice_for(CUptiResult result)
{
    switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return ": this user may not trace the GPU; run as root or with CAP_SYS_ADMIN, or "
               "load the driver with NVreg_RestrictProfilingToAdminUsers=0. Times by "
               "events (gexec compare) need no such right";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return ": another tool holds CUPTI in this process; run without nsys, ncu, "
               "cuda-gdb and compute-sanitizer, or read that tool's own report";
    case CUPTI_ERROR_NOT_INITIALIZED:
    case CUPTI_ERROR_UNKNOWN:
        return ": CUPTI does not start; is there an NVIDIA driver of its version, and a "
               "GPU?";
    default:
        return "";
    }
}

static gx_status status_of(CUptiResult result)
{
    return result == CUPTI_ERROR_OUT_OF_MEMORY ? GX_ERR_MEMORY : GX_ERR_UNSUPPORTED;
}

gx_status gx_check_cupti(const gx_cupti *cupti, CUptiResult result, const char *call,
                         const char *file, int line, gx_error *err)
{
    const char *name = NULL;

    if (result == CUPTI_SUCCESS)
        return GX_OK;
    if (cupti->cuptiGetResultString(result, &name) != CUPTI_SUCCESS || !name)
        name = "unknown error";
    return gx_fail(err, status_of(result), (int)result, file, line, "%s: %s (%d)%s", call,
                   name, (int)result, advice_for(result));
}
