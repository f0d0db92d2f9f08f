/* gexec doctor: what this machine has and lacks, and the one thing to do about each lack.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "ceilings_report.h"
#include "json_out.h"
#include "nvml.h"
#include "session.h"

enum { MAX_FINDINGS = 48, TEXT_SIZE = 320 };

typedef struct finding {
    const char *subject;
    bool has;
    char text[TEXT_SIZE];
    const char *todo;            /* NULL where nothing is to do */
    const gx_ceilings *ceilings; /* NULL but where they were found */
} finding;

typedef struct findings {
    finding item[MAX_FINDINGS];
    size_t n;
} findings;

static void add(findings *list, const char *subject, bool has, const char *todo,
                const char *format, ...) GX_PRINTF(5, 6);

static void add(findings *list, const char *subject, bool has, const char *todo,
                const char *format, ...)
{
    finding *const item = &list->item[list->n];
    va_list arguments;

    if (list->n == MAX_FINDINGS)
        return;
    list->n++;
    item->subject = subject;
    item->has = has;
    item->todo = has ? NULL : todo;
    va_start(arguments, format);
    vsnprintf(item->text, sizeof item->text, format, arguments);
    va_end(arguments);
    for (char *at = item->text; *at; at++)
        if (*at == '\n')
            *at = ' ';
}

/* --- the build --- */

static void look_at_build(findings *list)
{
    add(list, "gexec", true, NULL, "%s", gx_version());
    if (gx_has_cuda())
        add(list, "CUDA in the build", true, NULL, "built for %s",
            gx_cuda_architectures());
    else
        add(list, "CUDA in the build", false,
            "install a CUDA toolkit of 12.4 or newer and build again (tools/quickstart "
            "does)",
            "built for the CPU alone");
    add(list, "NVTX in the build", gx_has_nvtx(),
        "build with -DGEXEC_NVTX=ON and a CUDA toolkit that has nvtx3/nvToolsExt.h",
        gx_has_nvtx() ? "ranges are marked, domain gexec" : "no ranges are marked");
    add(list, "SQLite in the build", GX_HAVE_SQLITE,
        "install libsqlite3-dev and build again",
        "reads exports of Nsight Systems (gexec nsys)");
    add(list, "YAJL in the build", GX_HAVE_YAJL, "install libyajl-dev and build again",
        "reads traces of PyTorch's profiler (gexec nsys)");
    add(list, "zlib in the build", GX_HAVE_ZLIB, "install zlib1g-dev and build again",
        "reads such traces where they are gzipped");
}

/* --- driver and devices --- */

static void look_at_driver(findings *list)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    gx_nvml *const nvml = gx_nvml_open("");

    add(list, "NVIDIA driver", library != NULL,
        "install the NVIDIA driver, or start the container with GPU access",
        library ? "libcuda.so.1 loads" : "libcuda.so.1 cannot be loaded");
    if (library)
        dlclose(library);
    /* Several cards are no lack: compare asks for its own by bus id. */
    if (strcmp(gx_nvml_driver(nvml), "n/a") != 0)
        add(list, "NVML", true, NULL, "driver %s", gx_nvml_driver(nvml));
    else
        add(list, "NVML", false,
            "nothing, unless clocks are wanted: libnvidia-ml.so.1 comes with the driver",
            "%s: clocks and throttling will be n/a", gx_nvml_lack(nvml));
    gx_nvml_close(nvml);
}

static void look_at_device(findings *list, int device)
{
    gx_device_info info;
    gx_error err = { 0 };

    if (gx_device_info_get(device, &info, &err) != GX_OK) {
        add(list, "GPU", false, "choose another with --gpu", "%d: %s", device,
            err.message);
        return;
    }
    add(list, "GPU", true, NULL, "%d: %s, sm_%d%d, %d multiprocessors, %s free of %s",
        device, info.name, info.cc_major, info.cc_minor, info.n_sm,
        gx_words_bytes((double)info.free_bytes).text,
        gx_words_bytes((double)info.memory_bytes).text);
    if (device > 0)
        return;
    add(list, "CUDA versions", true, NULL, "driver %s, toolkit %s",
        gx_words_cuda_version(info.driver_version).text,
        gx_words_cuda_version(info.runtime_version).text);
    add(list, "cuBLASLt", true, NULL, "%zu", info.cublaslt_version);
}

static void look_at_devices(findings *list)
{
    gx_error err = { 0 };
    int n = 0;

    if (gx_device_count(&n, &err) != GX_OK || n == 0)
        add(list, "GPU", false,
            gx_has_cuda()
                ? "see the driver above, and whether CUDA_VISIBLE_DEVICES hides the "
                  "card; until then models run on the CPU"
                : "build with CUDA first; until then models run on the CPU",
            "%s", err.message[0] ? err.message : "no CUDA device");
    for (int i = 0; i < n; i++)
        look_at_device(list, i);
    for (size_t i = 0; gx_cuda_variables[i]; i++)
        if (getenv(gx_cuda_variables[i]))
            add(list, "environment", true, NULL, "%s=%.200s", gx_cuda_variables[i],
                getenv(gx_cuda_variables[i]));
}

static void look_at_cupti(findings *list)
{
    char text[TEXT_SIZE];
    gx_error err = { 0 };
    const bool has = gx_profiler_available(text, sizeof text, &err) == GX_OK;

    add(list, "CUPTI", has, "nothing, unless traces by gexec profile are wanted", "%s",
        has ? text : err.message);
}

/* --- the ceilings of a card --- */

static int chosen_gpu(const gx_args *args)
{
    return args->gpu >= 0 ? (int)args->gpu : 0;
}

/* Measures and keeps them. What was measured is there even when it could not be kept. */
static gx_status measure(const gx_args *args, gx_ceilings *ceilings, bool *has,
                         gx_error *err)
{
    const int gpu = chosen_gpu(args);
    gx_device_info info;

    GX_TRY(gx_device_info_get(gpu, &info, err));
    gx_say(args, "measuring GPU %d, %s: some seconds", gpu, info.name);
    GX_TRY(gx_ceilings_measure(gpu, ceilings, err));
    *has = true;
    return gx_ceilings_save(&info, NULL, ceilings, err);
}

/* Nothing is said where there is no card to have any. */
static void look_at_ceilings(findings *list, const gx_args *args, gx_ceilings *ceilings,
                             bool measured)
{
    const int gpu = chosen_gpu(args);
    gx_device_info info;
    gx_error err = { 0 };
    int n = 0;

    if (gx_device_count(&n, &err) != GX_OK || n == 0)
        return;
    bool has = measured;
    if (!has && gx_device_info_get(gpu, &info, &err) == GX_OK)
        has = gx_ceilings_load(&info, NULL, ceilings, &err) == GX_OK;
    if (has)
        add(list, "ceilings", true, NULL, "%d: measured %s", gpu, ceilings->date);
    else
        add(list, "ceilings", false,
            "nothing, unless floors and rooflines are wanted: gexec doctor --measure, on "
            "an idle card",
            "%d: %s", gpu, err.message);
    if (has && list->n > 0)
        list->item[list->n - 1].ceilings = ceilings;
}

/* --- programs --- */

/* True when `name` is an executable of some folder of PATH, which goes to `path`. */
static bool find_program(const char *name, char *path, size_t size)
{
    const char *folder = getenv("PATH");

    while (folder && *folder) {
        const size_t length = strcspn(folder, ":");

        snprintf(path, size, "%.*s/%s", (int)length, folder, name);
        if (length > 0 && access(path, X_OK) == 0)
            return true;
        folder += length;
        folder += *folder == ':';
    }
    return false;
}

static void look_at_programs(findings *list)
{
    char path[TEXT_SIZE - 16];
    const bool has = find_program("nsys", path, sizeof path);

    add(list, "nsys", has,
        "nothing, unless traces by Nsight Systems are wanted: install it and put nsys on "
        "PATH",
        "%s", has ? path : "not on PATH");
}

/* --- telling --- */

static void print_findings(const findings *list, FILE *out)
{
    for (size_t i = 0; i < list->n; i++) {
        const finding *const item = &list->item[i];

        fprintf(out, "%-6s %-19s %s\n", item->has ? "has" : "lacks", item->subject,
                item->text);
        if (item->todo)
            fprintf(out, "%-26s to do: %s\n", "", item->todo);
    }
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].ceilings)
            gx_ceilings_print(list->item[i].ceilings, out);
}

static gx_status write_findings(const findings *list, const char *path, gx_error *err)
{
    gx_json *json = gx_json_create();
    gx_status st;

    gx_json_array(json, NULL);
    for (size_t i = 0; i < list->n; i++) {
        const finding *const item = &list->item[i];

        gx_json_object(json, NULL);
        gx_json_text(json, "subject", item->subject);
        gx_json_bool(json, "has", item->has);
        gx_json_text(json, "text", item->text);
        gx_json_text(json, "to_do", item->todo);
        if (item->ceilings)
            gx_ceilings_json(json, "ceilings", item->ceilings);
        gx_json_end(json);
    }
    gx_json_end(json);
    st = gx_json_write(json, path, err);
    gx_json_free(json);
    return st;
}

int gx_cmd_doctor(const gx_args *args)
{
    static findings list; /* too large for the stack */
    gx_ceilings ceilings;
    gx_error unkept = { 0 };
    gx_error err = { 0 };
    bool measured = false;

    if (args->measure && measure(args, &ceilings, &measured, &unkept) != GX_OK &&
        !measured)
        return gx_say_error(args, &unkept);
    list.n = 0;
    look_at_build(&list);
    look_at_driver(&list);
    look_at_devices(&list);
    look_at_cupti(&list);
    look_at_ceilings(&list, args, &ceilings, measured);
    look_at_programs(&list);
    if (!gx_stdout_is_taken(args))
        print_findings(&list, stdout);
    if (args->json && write_findings(&list, args->json, &err) != GX_OK)
        return gx_say_error(args, &err);
    return unkept.status != GX_OK ? gx_say_error(args, &unkept) : GX_EXIT_OK;
}
