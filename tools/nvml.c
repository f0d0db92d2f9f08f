/* Clocks and throttling of a GPU, from NVML where it can be loaded. Its header is not
 * needed: the few functions have had these types since NVML began. */
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_SUCCESS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

typedef struct nvml_device *device_handle;
typedef int plain_fn(void);
typedef int driver_fn(char *text, unsigned size);
typedef int count_fn(unsigned *n);
typedef int by_index_fn(unsigned i, device_handle *device);
typedef int by_bus_fn(const char *bus_id, device_handle *device);
typedef int read_fn(device_handle device, int which, unsigned *value);
typedef int reasons_fn(device_handle device, unsigned long long *reasons);

struct gx_nvml {
    void *library;
    const char *lack;
    char driver[80];
    device_handle device;
    plain_fn *shutdown;
    read_fn *clock, *temperature;
    reasons_fn *reasons;
};

/* A function by name; dlsym's object pointer becomes a function pointer bit by bit. */
static bool find(const gx_nvml *nvml, const char *name, void *function)
{
    void *const symbol = dlsym(nvml->library, name);

    if (symbol)
        memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static const char *find_device(gx_nvml *nvml, const char *pci_bus_id)
{
    by_bus_fn *by_bus;
    by_index_fn *by_index;
    count_fn *count;
    unsigned n = 0;

    if (pci_bus_id[0]) {
        if (!find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus))
            return "NVML lacks nvmlDeviceGetHandleByPciBusId_v2";
        return by_bus(pci_bus_id, &nvml->device) == NVML_SUCCESS
                   ? NULL
                   : "NVML does not know the card";
    }
    if (!find(nvml, "nvmlDeviceGetCount_v2", &count) ||
        !find(nvml, "nvmlDeviceGetHandleByIndex_v2", &by_index))
        return "NVML lacks its device functions";
    if (count(&n) != NVML_SUCCESS || n == 0)
        return "NVML sees no card";
    if (n > 1)
        return "there are several cards and the bus id of this one is not known";
    return by_index(0, &nvml->device) == NVML_SUCCESS ? NULL
                                                      : "NVML does not know the card";
}

static const char *start(gx_nvml *nvml, const char *pci_bus_id)
{
    plain_fn *init;
    driver_fn *driver;

    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return "libnvidia-ml.so.1 cannot be loaded; it comes with the NVIDIA driver";
    if (!find(nvml, "nvmlInit_v2", &init) || !find(nvml, "nvmlShutdown", &nvml->shutdown))
        return "libnvidia-ml.so.1 lacks nvmlInit_v2";
    if (init() != NVML_SUCCESS) {
        nvml->shutdown = NULL;
        return "NVML cannot be initialised";
    }
    if (find(nvml, "nvmlSystemGetDriverVersion", &driver) &&
        driver(nvml->driver, sizeof nvml->driver) != NVML_SUCCESS)
        snprintf(nvml->driver, sizeof nvml->driver, "n/a");
    if (!find(nvml, "nvmlDeviceGetClockInfo", &nvml->clock))
        return "NVML lacks nvmlDeviceGetClockInfo";
    if (!find(nvml, "nvmlDeviceGetTemperature", &nvml->temperature))
        nvml->temperature = NULL;
    /* The first name came later; both give the same bits. */
    if (!find(nvml, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons) &&
        !find(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->reasons))
        nvml->reasons = NULL;
    return find_device(nvml, pci_bus_id);
}

gx_nvml *gx_nvml_open(const char *pci_bus_id)
{
    gx_nvml *nvml = calloc(1, sizeof *nvml);

    if (!nvml)
        return NULL;
    snprintf(nvml->driver, sizeof nvml->driver, "n/a");
    nvml->lack = start(nvml, pci_bus_id);
    return nvml;
}

void gx_nvml_close(gx_nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->shutdown)
        nvml->shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
}

const char *gx_nvml_lack(const gx_nvml *nvml)
{
    return nvml ? nvml->lack : "out of memory";
}

const char *gx_nvml_driver(const gx_nvml *nvml)
{
    return nvml ? nvml->driver : "n/a";
}

gx_clocks gx_nvml_clocks(const gx_nvml *nvml)
{
    gx_clocks clocks = { 0 };
    unsigned long long reasons = 0;

    if (!nvml || nvml->lack)
        return clocks;
    clocks.known =
        nvml->clock(nvml->device, CLOCK_SM, &clocks.sm_mhz) == NVML_SUCCESS &&
        nvml->clock(nvml->device, CLOCK_MEMORY, &clocks.memory_mhz) == NVML_SUCCESS;
    if (nvml->temperature)
        (void)nvml->temperature(nvml->device, SENSOR_GPU, &clocks.temperature_c);
    if (nvml->reasons && nvml->reasons(nvml->device, &reasons) == NVML_SUCCESS)
        clocks.throttle = reasons;
    return clocks;
}

char *gx_throttle_text(uint64_t throttle, char *text, size_t size)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } reasons[] = {
        { 0x02, "clocks set by an application" },
        { 0x04, "power cap" },
        { 0x08, "hardware slowdown" },
        { 0x10, "sync boost" },
        { 0x20, "software thermal" },
        { 0x40, "hardware thermal" },
        { 0x80, "power brake" },
        { 0x100, "display clocks" },
    };
    size_t length = 0;

    snprintf(text, size, "none");
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if ((throttle & reasons[i].bit) && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length ? ", " : "", reasons[i].name);
    return text;
}
