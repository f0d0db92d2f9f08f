/* A table of texts with aligned columns. */
#ifndef GX_TEXT_TABLE_H
#define GX_TEXT_TABLE_H

#include <stdio.h>

#include <gexec/status.h>

typedef struct gx_text_table gx_text_table;

/* `alignments` has a letter a column: 'l' or 'r'. NULL: out of memory. */
gx_text_table *gx_text_table_create(const char *alignments);
void gx_text_table_free(gx_text_table *table);
/* Adds the next cell; rows fill from left to right. Texts are copied. */
void gx_text_table_cell(gx_text_table *table, const char *format, ...) GX_PRINTF(2, 3);
/* A line of dashes behind the rows that are complete. */
void gx_text_table_rule(gx_text_table *table);
/* Prints all rows, each behind `indent`. A table that ran out of memory prints a line
 * that says so. */
void gx_text_table_print(const gx_text_table *table, const char *indent, FILE *out);

#endif
