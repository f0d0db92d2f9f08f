/* JSON that a test reads back, strictly. Only where the build has YAJL. */
#ifndef GX_SUPPORT_JSON_H
#define GX_SUPPORT_JSON_H

#include "support.h"

#if GX_HAVE_YAJL
#include <yajl_tree.h>

/* Fails the test unless the text is one JSON document; yajl_tree_free frees. */
yajl_val json_parse(const char *text);
/* A field; NULL where there is none. */
yajl_val json_get(yajl_val object, const char *key);
/* These fail the test where the field is missing or something else. */
const char *json_text(yajl_val object, const char *key);
int64_t json_integer(yajl_val object, const char *key);
/* Nanoseconds of "12.345" microseconds; three decimals, exactly. */
int64_t json_us(yajl_val object, const char *key);
size_t json_count(yajl_val array);
yajl_val json_at(yajl_val array, size_t i);
#endif

#endif
