/* The report as one HTML file: a page that was built in, with the data in it. */
#include "report_page.h"

#include "part_file.h"

/* Records that a page holds: drawn without delay, and some 30 MB as text. */
enum { MOST_RECORDS = 600000 };

static gx_status put_data(gx_json *json, const gx_report *report, gx_error *err)
{
    static const gx_report_weights weights = { .activity = 1, .call = 1, .gap = 1 };
    const gx_report_window window = gx_report_window_of(report, MOST_RECORDS, &weights);
    gx_report_ops ops;
    gx_status st = gx_report_ops_of(report, &ops, err);

    gx_json_object(json, NULL);
    gx_json_text(json, "gexec", gx_version());
    gx_json_text(json, "title", report->title);
    gx_report_put_verdict(json, report);
    gx_json_integer(json, "left_out", window.left_out);
    if (window.cut == INT64_MAX)
        gx_json_text(json, "cut_ns", NULL);
    else
        gx_json_integer(json, "cut_ns", window.cut);
    gx_json_array(json, "classes");
    for (int c = 0; c < GX_GAP_CLASSES; c++)
        gx_json_text(json, NULL, gx_gap_class_name((gx_gap_class)c));
    gx_json_end(json);
    gx_report_put_ops(json, report, &ops);
    gx_json_array(json, "sides");
    for (size_t i = 0; i < report->n_sides && st == GX_OK; i++)
        st = gx_report_put_side(json, report, &ops, &window, i, err);
    gx_json_end(json);
    if (report->profile)
        gx_report_put_profile(json, report->profile);
    gx_json_end(json);
    gx_report_ops_free(&ops);
    return st;
}

gx_status gx_report_html(const gx_report *report, const char *path, gx_error *err)
{
    gx_part_file file;
    gx_json *json = NULL;
    gx_status st = gx_part_open(&file, path, err);

    if (st == GX_OK) {
        json = gx_json_stream(file.out, true);
        if (!json)
            st = GX_FAIL(err, GX_ERR_MEMORY, "out of memory");
    }
    if (st == GX_OK) {
        /* What could not be written is found at the end. */
        (void)!fwrite(gx_report_head, 1, gx_report_head_size, file.out);
        st = put_data(json, report, err);
    }
    if (st == GX_OK)
        (void)!fwrite(gx_report_tail, 1, gx_report_tail_size, file.out);
    gx_json_free(json);
    return gx_part_close(&file, st, err);
}
