/* Integer expressions over dims: + - * / % and parentheses, in 64 bits, checked.
 *
 *     sum     = product { ("+" | "-") product }
 *     product = sign { ("*" | "/" | "%") sign }
 *     sign    = [ "+" | "-" ] sign | number | dim | "(" sum ")"
 *
 * "/" must divide without remainder. A number is decimal digits without a leading 0. */
#include <stdlib.h>
#include <string.h>

#include "graph_model.h"
#include "number.h"

enum { DEEPEST = 64 };

typedef struct parser {
    const gx_graph *graph;
    const char *text;
    const char *at;
    int depth;
    gx_pos pos;
    gx_diagnostics *list;
    bool failed;
} parser;

static int64_t sum(parser *p);

static int64_t fail(parser *p, const char *why)
{
    if (!p->failed)
        gx_report(p->list, p->pos, "\"%s\": %s", p->text, why);
    p->failed = true;
    return 0;
}

static char peek(parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

static int64_t number(parser *p)
{
    const char *start = p->at;
    int64_t value = 0;

    while (*p->at >= '0' && *p->at <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *p->at - '0', &value))
            return fail(p, "the number does not fit into 64 bits");
        p->at++;
    }
    if (is_word(*p->at))
        return fail(p,
                    "expected a whole decimal number, or an expression of such numbers "
                    "and dims");
    if (*start == '0' && p->at - start > 1)
        return fail(p, "a number is decimal and does not start with 0");
    return value;
}

static int64_t no_dim(parser *p, const char *name)
{
    const gx_graph *graph = p->graph;
    const char **names = malloc((graph->n_dims + 1) * sizeof *names);
    const char *near = NULL;

    for (size_t i = 0; names && i < graph->n_dims; i++)
        names[i] = graph->dims[i].name;
    if (names)
        near = gx_nearest(name, names, graph->n_dims);
    free(names);
    if (!p->failed && near)
        gx_report(p->list, p->pos, "there is no dim \"%s\"; did you mean \"%s\"?", name,
                  near);
    else if (!p->failed)
        gx_report(p->list, p->pos, "there is no dim \"%s\"", name);
    p->failed = true;
    return 0;
}

static int64_t dim(parser *p)
{
    char name[GX_LIMIT_NAME + 1];
    size_t n = 0;

    while (is_word(p->at[n]))
        n++;
    if (n == 0 || n > GX_LIMIT_NAME)
        return fail(p, "expected an integer, or an expression of integers and dims");
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    for (size_t i = 0; i < p->graph->n_dims; i++) {
        if (strcmp(p->graph->dims[i].name, name) == 0)
            return p->graph->dims[i].value;
    }
    if (!gx_is_dim_name(name))
        return fail(p,
                    "expected a whole decimal number, or an expression of such numbers "
                    "and dims");
    return no_dim(p, name);
}

static int64_t sign(parser *p)
{
    int64_t value;
    const char c = peek(p);

    if (p->failed)
        return 0;
    if (++p->depth > DEEPEST)
        return fail(p, "the expression is nested deeper than 64");
    if (c == '+' || c == '-') {
        p->at++;
        value = sign(p);
        if (c == '-' && __builtin_sub_overflow(0, value, &value))
            fail(p, "the result does not fit into 64 bits");
    } else if (c == '(') {
        p->at++;
        value = sum(p);
        if (peek(p) == ')')
            p->at++;
        else
            fail(p, "expected \")\"");
    } else if (c >= '0' && c <= '9') {
        value = number(p);
    } else {
        value = dim(p);
    }
    p->depth--;
    return value;
}

static int64_t divide(parser *p, char operator, int64_t a, int64_t b)
{
    if (p->failed)
        return 0;
    if (b == 0)
        return fail(p, "division by zero");
    if (a == INT64_MIN && b == -1)
        return fail(p, "the result does not fit into 64 bits");
    if (operator== '%')
        return a % b;
    if (a % b != 0) {
        gx_report(p->list, p->pos, "\"%s\": %lld is no multiple of %lld", p->text,
                  (long long)a, (long long)b);
        p->failed = true;
        return 0;
    }
    return a / b;
}

static int64_t product(parser *p)
{
    int64_t value = sign(p);

    for (char c = peek(p); !p->failed && (c == '*' || c == '/' || c == '%');
         c = peek(p)) {
        p->at++;
        const int64_t right = sign(p);

        if (c != '*')
            value = divide(p, c, value, right);
        else if (__builtin_mul_overflow(value, right, &value))
            fail(p, "the result does not fit into 64 bits");
    }
    return value;
}

static int64_t sum(parser *p)
{
    int64_t value = product(p);

    for (char c = peek(p); !p->failed && (c == '+' || c == '-'); c = peek(p)) {
        p->at++;
        const int64_t right = product(p);

        if (c == '+' ? __builtin_add_overflow(value, right, &value)
                     : __builtin_sub_overflow(value, right, &value))
            fail(p, "the result does not fit into 64 bits");
    }
    return value;
}

bool gx_eval_int(const gx_graph *graph, const char *text, gx_pos pos,
                 gx_diagnostics *list, int64_t *value)
{
    parser p = { .graph = graph, .text = text, .at = text, .pos = pos, .list = list };
    const int64_t result = sum(&p);

    if (!p.failed && peek(&p) != '\0')
        fail(&p, "expected an integer, or an expression of integers and dims");
    if (!p.failed)
        *value = result;
    return !p.failed;
}
