/* JSON that a test reads back, strictly. */
#include "support_json.h"

#include <stdlib.h>
#include <string.h>

#if GX_HAVE_YAJL
yajl_val json_parse(const char *text)
{
    char message[400];
    const yajl_val root = yajl_tree_parse(text, message, sizeof message);

    if (!root)
        fail_msg("no JSON: %s", message);
    return root;
}

yajl_val json_get(yajl_val object, const char *key)
{
    assert_true(YAJL_IS_OBJECT(object));
    for (size_t i = 0; i < object->u.object.len; i++)
        if (strcmp(object->u.object.keys[i], key) == 0)
            return object->u.object.values[i];
    return NULL;
}

static yajl_val need(yajl_val object, const char *key)
{
    const yajl_val value = json_get(object, key);

    if (!value)
        fail_msg("no field '%s'", key);
    return value;
}

const char *json_text(yajl_val object, const char *key)
{
    const yajl_val value = need(object, key);

    assert_true(YAJL_IS_STRING(value));
    return YAJL_GET_STRING(value);
}

int64_t json_integer(yajl_val object, const char *key)
{
    const yajl_val value = need(object, key);

    assert_true(YAJL_IS_INTEGER(value));
    return YAJL_GET_INTEGER(value);
}

int64_t json_us(yajl_val object, const char *key)
{
    const yajl_val value = need(object, key);
    const char *text, *point;

    assert_true(YAJL_IS_NUMBER(value));
    text = YAJL_GET_NUMBER(value);
    point = strchr(text, '.');
    assert_non_null(point);
    assert_int_equal(strlen(point), 4);
    assert_null(strpbrk(text, "eE"));
    return strtoll(text, NULL, 10) * 1000 +
           (text[0] == '-' ? -1 : 1) * strtoll(point + 1, NULL, 10);
}

size_t json_count(yajl_val array)
{
    assert_true(YAJL_IS_ARRAY(array));
    return array->u.array.len;
}

yajl_val json_at(yajl_val array, size_t i)
{
    assert_true(i < json_count(array));
    return array->u.array.values[i];
}
#endif
