/* What the optimizer section says of mixed precision: weights and moments that are kept
 * in f32, and the scale of the loss. */
#include <string.h>

#include "builder.h"

static const char scaling[] = "loss_scale.";

static bool is_scaling(const gx_field_value *field)
{
    return strncmp(field->key, scaling, strlen(scaling)) == 0;
}

static void check_kept(gx_builder *builder, const gx_field_value *field, gx_kept *kept)
{
    if (strcmp(field->text, "f32") == 0)
        *kept = GX_KEPT_F32;
    else if (strcmp(field->text, "param") == 0)
        *kept = GX_KEPT_LIKE_PARAM;
    else
        gx_report(builder->list, field->pos,
                  "%s is \"%s\", expected f32, or param: of the type of the parameter",
                  field->key, field->text);
}

static bool check_scale(gx_builder *builder, const gx_field_value *field, const char *key,
                        double *scale)
{
    if (gx_read_real(field->text, scale) && *scale > 0 && gx_fits_f32(*scale))
        return true;
    gx_report(builder->list, field->pos, "%s is \"%s\", expected a number above 0%s", key,
              field->text, field->key == key ? ", or dynamic" : "");
    return false;
}

/* One setting of a dynamic scale: "loss_scale.KEY". */
static void check_dynamic(gx_builder *builder, gx_field_value field)
{
    static const char *const keys[] = { "initial", "growth_interval", "growth",
                                        "backoff" };
    enum { N_KEYS = sizeof keys / sizeof keys[0] };
    gx_training *training = &builder->training;
    gx_attr attr = { 0 };
    int index, k = 0;

    field.key += strlen(scaling);
    while (k < N_KEYS && strcmp(keys[k], field.key) != 0)
        k++;
    if (k == 0) {
        check_scale(builder, &field, "initial", &training->first_scale);
    } else if (k < N_KEYS) {
        const gx_field *of_row =
            gx_field_find(gx_op_find("loss_scale"), field.key, &index);

        if (gx_read_attr(builder, of_row, field.text, field.pos, &attr))
            training->scaling[training->n_scaling++] = field;
    } else {
        const char *near = gx_nearest(field.key, keys, N_KEYS);

        gx_report(builder->list, field.key_pos,
                  near
                      ? "a dynamic loss_scale has no setting \"%s\"; did you mean \"%s\"?"
                      : "a dynamic loss_scale has no setting \"%s\"",
                  field.key, near);
    }
}

static void check_loss_scale(gx_builder *builder, const gx_field_value *field)
{
    static const double FIRST = 65536; /* as torch.amp.GradScaler */
    const gx_section *section = &builder->graph->optimizer;
    gx_training *training = &builder->training;
    const bool dynamic = strcmp(field->text, "dynamic") == 0;

    training->first_scale = FIRST;
    training->scaling =
        gx_arena_alloc(builder->graph->arena,
                       ((size_t)section->n_fields + 1) * sizeof *training->scaling);
    if (!training->scaling ||
        (!dynamic && !check_scale(builder, field, field->key, &training->first_scale)))
        return;
    training->scale = field;
    training->dynamic = dynamic;
    for (int f = 0; f < section->n_fields; f++) {
        if (!is_scaling(&section->fields[f]))
            continue;
        if (dynamic)
            check_dynamic(builder, section->fields[f]);
        else
            gx_report(builder->list, section->fields[f].key_pos,
                      "\"%s\" is for a loss_scale that is dynamic",
                      section->fields[f].key);
    }
}

/* A setting of a scale that is not there, as code may give it. */
static void check_unnamed(gx_builder *builder, const gx_field_value *setting)
{
    const gx_section *section = &builder->graph->optimizer;

    for (int f = 0; f < section->n_fields; f++) {
        if (strcmp(section->fields[f].key, "loss_scale") == 0)
            return;
    }
    gx_report(builder->list, setting->key_pos, "\"%s\" needs \"loss_scale\"",
              setting->key);
}

bool gx_check_mixed(gx_builder *builder, const gx_field_value *field)
{
    gx_training *training = &builder->training;

    if (strcmp(field->key, "master") == 0)
        check_kept(builder, field, &training->master);
    else if (strcmp(field->key, "moments") == 0)
        check_kept(builder, field, &training->moments);
    else if (strcmp(field->key, "loss_scale") == 0)
        check_loss_scale(builder, field);
    else if (is_scaling(field))
        check_unnamed(builder, field);
    else
        return false;
    return true;
}

gx_dtype gx_moment_type(const gx_builder *builder, gx_dtype param)
{
    const gx_training *training = &builder->training;

    /* The square of a gradient leaves the range of f16. */
    return training->moments == GX_KEPT_F32 ||
                   (param == GX_F16 && training->moments == GX_KEPT_UNSAID)
               ? GX_F32
               : param;
}
