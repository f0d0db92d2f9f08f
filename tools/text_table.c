/* A table of texts with aligned columns. */
#include "text_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 20 };

struct gx_text_table {
    char alignments[MAX_COLUMNS + 1];
    size_t n_columns;
    char **cells; /* NULL: part of a rule */
    size_t n, capacity;
    bool failed;
};

gx_text_table *gx_text_table_create(const char *alignments)
{
    gx_text_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    snprintf(table->alignments, sizeof table->alignments, "%s", alignments);
    table->n_columns = strlen(table->alignments);
    return table;
}

void gx_text_table_free(gx_text_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->n; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

static void add(gx_text_table *table, char *cell)
{
    if (table->n == table->capacity) {
        const size_t capacity = 2 * table->capacity + 32;
        char **grown = realloc(table->cells, capacity * sizeof *grown);

        if (!grown) {
            free(cell);
            table->failed = true;
            return;
        }
        table->cells = grown;
        table->capacity = capacity;
    }
    table->cells[table->n++] = cell;
}

void gx_text_table_cell(gx_text_table *table, const char *format, ...)
{
    va_list list;
    char *cell;
    int length;

    if (!table || table->failed)
        return;
    va_start(list, format);
    length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    cell = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!cell) {
        table->failed = true;
        return;
    }
    va_start(list, format);
    vsnprintf(cell, (size_t)length + 1, format, list);
    va_end(list);
    add(table, cell);
}

void gx_text_table_rule(gx_text_table *table)
{
    for (size_t i = 0; table && i < table->n_columns && !table->failed; i++)
        add(table, NULL);
}

/* Columns of a row up to the last that holds something, at least one. */
static size_t used_columns(const gx_text_table *table, size_t first)
{
    size_t n = table->n_columns;

    while (n > 1 && table->cells[first + n - 1] && !table->cells[first + n - 1][0])
        n--;
    return n;
}

static void print_row(const gx_text_table *table, size_t first, const int *width,
                      FILE *out)
{
    const size_t n = used_columns(table, first);

    for (size_t c = 0; c < n; c++) {
        const char *const cell = table->cells[first + c];
        const bool last = c + 1 == n;

        if (!cell)
            for (int i = 0; i < width[c]; i++)
                fputc('-', out);
        else if (table->alignments[c] == 'r')
            fprintf(out, "%*s", width[c], cell);
        else
            fprintf(out, "%-*s", last ? 0 : width[c], cell);
        fputs(last ? "\n" : "  ", out);
    }
}

void gx_text_table_print(const gx_text_table *table, const char *indent, FILE *out)
{
    int width[MAX_COLUMNS] = { 0 };

    if (!table || table->failed) {
        fprintf(out, "%s(out of memory: no table)\n", indent);
        return;
    }
    for (size_t i = 0; i < table->n; i++) {
        const int length = table->cells[i] ? (int)strlen(table->cells[i]) : 0;
        const size_t c = i % table->n_columns;

        if (length > width[c])
            width[c] = length;
    }
    for (size_t i = 0; i + table->n_columns <= table->n; i += table->n_columns) {
        fputs(indent, out);
        print_row(table, i, width, out);
    }
}
