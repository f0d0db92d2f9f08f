/* Clocks and throttling of a GPU, from NVML where it can be loaded. */
#ifndef GX_NVML_H
#define GX_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_nvml gx_nvml;

typedef struct gx_clocks {
    bool known;
    unsigned sm_mhz, memory_mhz, temperature_c;
    uint64_t throttle; /* bits of NVML */
} gx_clocks;

/* The card with this PCI bus id; "" stands for the only card there is. Never NULL unless
 * memory is out; what cannot be had is told by gx_nvml_lack. */
gx_nvml *gx_nvml_open(const char *pci_bus_id);
void gx_nvml_close(gx_nvml *nvml);
/* Why there are no clocks, or NULL when there are. */
const char *gx_nvml_lack(const gx_nvml *nvml);
/* The driver's own version such as "580.95.05"; "n/a" where unknown. */
const char *gx_nvml_driver(const gx_nvml *nvml);
gx_clocks gx_nvml_clocks(const gx_nvml *nvml);

/* "none", "power cap, thermal" into `text`; returns it. */
char *gx_throttle_text(uint64_t throttle, char *text, size_t size);

#endif
