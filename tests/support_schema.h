/* What the JSON Schema says of the catalogue. */
#ifndef GX_SUPPORT_SCHEMA_H
#define GX_SUPPORT_SCHEMA_H

/* Ops, optimizers and schedules, as text that stands in the schema; the caller frees. */
char *test_schema_ops(void);

#endif
