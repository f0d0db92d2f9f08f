/* What nvtx_inject.c wrote, read back. */
#include "support_nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *log_path;

void nvtx_start(void)
{
    if (!gx_has_nvtx() || !getenv("NVTX_INJECTION64_PATH")) {
        fprintf(stderr, "no NVTX in this build, or NVTX_INJECTION64_PATH is not set\n");
        exit(TEST_SKIPPED);
    }
    log_path = test_path("nvtx.log");
    if (setenv("GX_NVTX_LOG", log_path, 1) != 0)
        exit(EXIT_FAILURE);
}

typedef struct nvtx_reader {
    nvtx_log *log;
    int open[64];
    int domain; /* number of "gexec"; 0: not seen yet */
} nvtx_reader;

static void read_push(nvtx_reader *reader, const char *line)
{
    nvtx_log *log = reader->log;
    nvtx_range *range = &log->range[log->n_ranges];
    char payload[32];
    int domain;

    assert_true(log->n_ranges < NVTX_MAX_RANGES);
    assert_true(log->n_open >= 0 && log->n_open < 64);
    if (sscanf(line, "push %d %u %lx %31s %199[^\n]", &domain, &range->category,
               &range->colour, payload, range->text) != 5)
        fail_msg("not a push: %s", line);
    if (domain != reader->domain)
        return;
    range->payload = strcmp(payload, "-") == 0 ? -1 : atoll(payload);
    range->depth = log->n_open;
    range->parent = log->n_open > 0 ? reader->open[log->n_open - 1] : -1;
    reader->open[log->n_open++] = log->n_ranges++;
}

static void read_line(nvtx_reader *reader, const char *line, bool ranges)
{
    nvtx_log *log = reader->log;
    char text[200];
    unsigned category;
    int domain;

    if (sscanf(line, "domain %d %199[^\n]", &domain, text) == 2) {
        if (strcmp(text, "gexec") != 0)
            return;
        reader->domain = domain;
        log->n_domains++;
    } else if (sscanf(line, "category %d %u %199[^\n]", &domain, &category, text) == 3) {
        if (domain != reader->domain)
            return;
        assert_true(category < NVTX_MAX_CATEGORIES);
        assert_string_equal(log->category[category], "");
        snprintf(log->category[category], sizeof log->category[category], "%.39s", text);
        log->n_categories++;
    } else if (sscanf(line, "string %d", &domain) == 1) {
        log->n_strings += domain == reader->domain;
    } else if (strncmp(line, "push ", 5) == 0) {
        if (ranges)
            read_push(reader, line);
    } else if (sscanf(line, "pop %d", &domain) == 1) {
        if (ranges && domain == reader->domain)
            log->n_open--;
    } else {
        log->n_others += ranges;
    }
}

nvtx_log *nvtx_log_read(size_t first_line)
{
    nvtx_reader reader = { .log = calloc(1, sizeof(nvtx_log)) };
    char line[600];
    FILE *file = fopen(log_path, "r");

    assert_non_null(reader.log);
    if (!file)
        fail_msg("nothing was written to %s: NVTX did not load the library", log_path);
    while (fgets(line, sizeof line, file)) {
        read_line(&reader, line, reader.log->n_lines >= first_line);
        reader.log->n_lines++;
    }
    fclose(file);
    return reader.log;
}

unsigned nvtx_category(const nvtx_log *log, const char *name)
{
    for (unsigned i = 0; i < NVTX_MAX_CATEGORIES; i++)
        if (strcmp(log->category[i], name) == 0)
            return i;
    fail_msg("no category is named %s", name);
    return 0;
}

const nvtx_range *nvtx_at(const nvtx_log *log, int depth, int i)
{
    for (int k = 0; k < log->n_ranges; k++)
        if (log->range[k].depth == depth && i-- == 0)
            return &log->range[k];
    fail_msg("too few ranges at depth %d", depth);
    return NULL;
}

int nvtx_count(const nvtx_log *log, int depth)
{
    int n = 0;

    for (int k = 0; k < log->n_ranges; k++)
        n += log->range[k].depth == depth;
    return n;
}
