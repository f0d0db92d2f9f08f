/* A card's measured ceilings as text and as JSON. */
#ifndef GX_CEILINGS_REPORT_H
#define GX_CEILINGS_REPORT_H

#include <stdio.h>

#include <gexec/ceilings.h>

#include "json_out.h"

void gx_ceilings_print(const gx_ceilings *ceilings, FILE *out);
/* As an object of that key. */
void gx_ceilings_json(gx_json *json, const char *key, const gx_ceilings *ceilings);

#endif
