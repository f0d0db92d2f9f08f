/* The op table of a profile as CSV: a row for each op of each mode, and one for each of
 * its kernels. Text stands in quotes, a quote inside it twice. */

#include "lines_out.h"
#include "plan_report.h"
#include "profile_report.h"

static void put_text(const char *text, FILE *out)
{
    fputs(",\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* Nothing stands for what is not known. */
static void put_known(int64_t value, FILE *out)
{
    fputc(',', out);
    if (value >= 0)
        fprintf(out, "%lld", (long long)value);
}

static void put_real(double value, FILE *out)
{
    fputc(',', out);
    if (value >= 0)
        fprintf(out, "%.9g", value);
}

static void put_size(const int32_t *size, FILE *out)
{
    for (int i = 0; i < 3; i++)
        put_known(size[0] ? size[i] : -1, out);
}

static void put_head(const gx_profile_pass *pass, const gx_profile_op *op,
                     const char *row, FILE *out)
{
    const bool claimed = op->unit != SIZE_MAX;

    fprintf(out, "\n%s,%s", gx_mode_name(pass->mode), row);
    put_text(op->name, out);
    put_text(op->alternative, out);
    put_text(claimed ? gx_phase_text(op->phase) : "", out);
    put_known(op->lane, out);
    put_known(claimed ? (int64_t)op->unit : -1, out);
}

static void put_op(const gx_profile_pass *pass, const gx_profile_op *op, FILE *out)
{
    put_head(pass, op, "op", out);
    put_text("", out);
    put_text("", out);
    put_known(op->calls, out);
    put_real(op->share, out);
    put_known(op->total_ns, out);
    put_known(op->calls ? op->median_ns : -1, out);
    put_known(op->calls ? op->p95_ns : -1, out);
    fputs(",,,,,,,,", out); /* of kernels */
    put_real(op->flops, out);
    put_real(op->bytes, out);
    put_real(op->flop_rate, out);
    put_real(op->byte_rate, out);
    put_real(op->floor_s < 0 ? -1 : 1e9 * op->floor_s, out);
    put_real(op->of_floor, out);
    put_text(op->floor_s < 0 ? "" : gx_bound_name(op->bound), out);
}

static void put_kernel(const gx_profile_pass *pass, const gx_profile_op *op,
                       const gx_profile_kernel *kernel, FILE *out)
{
    put_head(pass, op, "kernel", out);
    put_text(kernel->name, out);
    put_text(gx_profile_kind_name(kernel->kind), out);
    put_known(kernel->calls, out);
    put_real(op->total_ns > 0
                 ? op->share * (double)kernel->total_ns / (double)op->total_ns
                 : 0,
             out);
    put_known(kernel->total_ns, out);
    put_known(kernel->median_ns, out);
    put_known(kernel->p95_ns, out);
    put_size(kernel->grid, out);
    put_size(kernel->block, out);
    put_known(kernel->registers, out);
    put_known(kernel->shared_bytes, out);
    fputs(",,,,,,,", out); /* of ops */
}

gx_status gx_profile_write_csv(const gx_profile *profile, const char *path, gx_error *err)
{
    gx_lines_out lines;

    GX_TRY(gx_lines_begin(&lines, err));
    fputs("mode,row,op,alternative,phase,lane,unit,kernel,kind,calls,share,total_ns,"
          "median_ns,p95_ns,grid_x,grid_y,grid_z,block_x,block_y,block_z,registers,"
          "shared_bytes,flops,bytes,flops_per_s,bytes_per_s,floor_ns,of_floor,bound",
          lines.out);
    for (int p = 0; p < 2; p++) {
        const gx_profile_pass *const pass = &profile->pass[p];

        for (size_t i = 0; i < pass->n_ops; i++) {
            const gx_profile_op *const op = &pass->op[i];

            put_op(pass, op, lines.out);
            for (size_t k = 0; k < op->n_kernels; k++)
                put_kernel(pass, op, &op->kernel[k], lines.out);
        }
    }
    return gx_lines_end(&lines, path, err);
}
