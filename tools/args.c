/* Parsing of the command line, and what is said when it is wrong. */
#include "args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "flags.h"

static const gx_args defaults = {
    .gpu = -1,
    .seed = 1,
    .steps = -1,
    .epochs = -1,
    .steps_per_launch = 1,
    .lanes = -1,
    .pairs = 25,
    .block = -1,
    .samples = 4,
    .top = 15,
    .warmup = 3,
    .active = 10,
    .repeat = 1,
};

static const char *command_name(const gx_args *args)
{
    return args->command ? args->command->name : NULL;
}

static void say(const gx_args *args, const char *format, va_list list)
{
    if (command_name(args))
        fprintf(stderr, "gexec %s: ", command_name(args));
    else
        fputs("gexec: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

static void say_see(const gx_args *args)
{
    fprintf(stderr, "  see: gexec %s%s--help\n",
            command_name(args) ? command_name(args) : "", command_name(args) ? " " : "");
}

int gx_say_usage(const gx_args *args, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(args, format, list);
    va_end(list);
    say_see(args);
    return GX_EXIT_USAGE;
}

void gx_say(const gx_args *args, const char *format, ...)
{
    va_list list;

    if (args->quiet)
        return;
    va_start(list, format);
    say(args, format, list);
    va_end(list);
}

int gx_say_error(const gx_args *args, const gx_error *err)
{
    if (err->message[0]) {
        fprintf(stderr, "gexec%s%s: %s\n", command_name(args) ? " " : "",
                command_name(args) ? command_name(args) : "", err->message);
        if (args->verbose)
            fprintf(stderr, "  %s at %s:%d\n", gx_status_name(err->status),
                    err->file ? err->file : "?", err->line);
    }
    switch (err->status) {
    case GX_ERR_NO_DEVICE:
    case GX_ERR_UNSUPPORTED:
        gx_say_lack(args);
        break;
    case GX_ERR_DEVICE_MEMORY:
        fputs(
            "  to do: free memory on the device, or make the model smaller with --set\n",
            stderr);
        break;
    default:
        break;
    }
    return gx_status_exit(err->status);
}

static int count_for_stdout(const gx_args *args)
{
    const char *const paths[] = { args->json, args->csv, args->svg, args->chrome,
                                  args->html };
    int n = 0;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        n += paths[i] && strcmp(paths[i], "-") == 0;
    return n;
}

bool gx_stdout_is_taken(const gx_args *args)
{
    return count_for_stdout(args) > 0;
}

bool gx_stdout_finish(const gx_args *args)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "gexec%s%s: standard output could not be written: %s\n",
            command_name(args) ? " " : "", command_name(args) ? command_name(args) : "",
            strerror(errno));
    return false;
}

/* --- flags --- */

static void *member(gx_args *args, const gx_flag *flag)
{
    return (char *)args + flag->offset;
}

static bool add_pair(gx_args *args, gx_pairs *pairs, const char *name, const char *value)
{
    gx_set *items = realloc(pairs->items, (pairs->n + 1) * sizeof *items);

    (void)args;
    if (!items)
        return false;
    pairs->items = items;
    items[pairs->n].name = name;
    items[pairs->n].value = value;
    pairs->n++;
    return true;
}

static char *copy_text(gx_args *args, const char *text)
{
    char **grown = realloc(args->text, (args->n_text + 1) * sizeof *grown);
    char *copy = NULL;

    if (grown) {
        args->text = grown;
        copy = malloc(strlen(text) + 1);
    }
    if (copy) {
        strcpy(copy, text);
        args->text[args->n_text++] = copy;
    }
    return copy;
}

static bool out_of_memory(const gx_args *args)
{
    gx_say_usage(args, "out of memory");
    return false;
}

static bool parse_pair(gx_args *args, const gx_flag *flag, const char *text)
{
    gx_pairs *const pairs = member(args, flag);
    char *const copy = copy_text(args, text);
    char *equals;

    if (!copy)
        return out_of_memory(args);
    equals = strchr(copy, '=');
    if (!equals && flag->kind == GX_FLAG_PAIR_OR_BARE && *copy)
        return add_pair(args, pairs, NULL, copy) || out_of_memory(args);
    if (!equals || equals == copy || !equals[1]) {
        gx_say_usage(args, "%s %s: expected %s", flag->name, text, flag->value);
        return false;
    }
    *equals = '\0';
    for (size_t i = 0; i < pairs->n; i++)
        if (pairs->items[i].name && strcmp(pairs->items[i].name, copy) == 0) {
            gx_say_usage(args, "%s %s is given twice", flag->name, copy);
            return false;
        }
    return add_pair(args, pairs, copy, equals + 1) || out_of_memory(args);
}

/* Decimal digits alone: no sign, no blanks, no other base. */
static bool parse_digits(const char *text, uint64_t *value)
{
    char *end;

    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0;
}

static bool parse_number(gx_args *args, const gx_flag *flag, const char *text)
{
    uint64_t value;

    for (int i = 0; flag->choices && flag->choices[i]; i++)
        if (strcmp(text, flag->choices[i]) == 0) {
            *(int64_t *)member(args, flag) = -1 - i;
            return true;
        }
    if (!parse_digits(text, &value) || value > (uint64_t)flag->high ||
        (int64_t)value < flag->low) {
        gx_say_usage(args, "%s %s: expected %s%sa whole number from %lld to %lld",
                     flag->name, text, flag->choices ? flag->choices[0] : "",
                     flag->choices ? " or " : "", (long long)flag->low,
                     (long long)flag->high);
        return false;
    }
    *(int64_t *)member(args, flag) = (int64_t)value;
    return true;
}

static bool parse_choice(gx_args *args, const gx_flag *flag, const char *text)
{
    const char *near;

    for (int i = 0; flag->choices[i]; i++)
        if (strcmp(text, flag->choices[i]) == 0) {
            *(int *)member(args, flag) = i;
            return true;
        }
    near = gx_near_name(text, flag->choices);
    fprintf(stderr, "gexec %s: %s %s: expected one of", command_name(args), flag->name,
            text);
    for (int i = 0; flag->choices[i]; i++)
        fprintf(stderr, " %s", flag->choices[i]);
    if (near)
        fprintf(stderr, "; did you mean %s?", near);
    fputc('\n', stderr);
    say_see(args);
    return false;
}

/* A flag of one value stands once: which of two was meant, nobody can say. */
static bool note_given(gx_args *args, const gx_flag *flag, const char *text)
{
    const size_t at = (size_t)(flag - gx_flag_at(0));

    if (flag->kind == GX_FLAG_PAIR || flag->kind == GX_FLAG_PAIR_OR_BARE)
        return true;
    if (args->given[at]) {
        gx_say_usage(args, "%s %s and %s %s: the flag may stand once", flag->name,
                     args->given[at], flag->name, text);
        return false;
    }
    args->given[at] = text;
    return true;
}

static bool parse_value(gx_args *args, const gx_flag *flag, const char *text)
{
    if (!note_given(args, flag, text))
        return false;
    switch (flag->kind) {
    case GX_FLAG_STRING:
        if (!*text) {
            gx_say_usage(args, "%s: expected %s", flag->name, flag->value);
            return false;
        }
        *(const char **)member(args, flag) = text;
        return true;
    case GX_FLAG_SEED:
        if (parse_digits(text, member(args, flag)))
            return true;
        gx_say_usage(args, "%s %s: expected a whole number from 0 to 2^64 - 1",
                     flag->name, text);
        return false;
    case GX_FLAG_NUMBER:
        return parse_number(args, flag, text);
    case GX_FLAG_CHOICE:
        return parse_choice(args, flag, text);
    case GX_FLAG_PAIR:
    case GX_FLAG_PAIR_OR_BARE:
        return parse_pair(args, flag, text);
    case GX_FLAG_SWITCH:
        break;
    }
    return false;
}

static const gx_flag *find_flag(const char *text, size_t length)
{
    for (size_t i = 0; gx_flag_at(i); i++) {
        const gx_flag *flag = gx_flag_at(i);

        if ((strlen(flag->name) == length && memcmp(flag->name, text, length) == 0) ||
            (flag->letter && strlen(flag->letter) == length &&
             memcmp(flag->letter, text, length) == 0))
            return flag;
    }
    return NULL;
}

static void say_unknown_flag(gx_args *args, const char *text, const gx_flag *other)
{
    const char *names[GX_MAX_FLAGS + 1];
    const char *near;
    size_t n = 0;

    /* Without the dashes, which all flags share and which make none of them nearer. */
    for (size_t i = 0; gx_flag_at(i) && n < GX_MAX_FLAGS; i++)
        if (gx_flag_at(i)->commands & args->command->bit)
            names[n++] = gx_flag_at(i)->name + 2;
    names[n] = NULL;
    near = gx_near_name(text + strspn(text, "-"), names);
    if (other)
        gx_say_usage(args, "%s is no flag of this command", other->name);
    else if (near)
        gx_say_usage(args, "unknown flag '%s'; did you mean --%s?", text, near);
    else
        gx_say_usage(args, "unknown flag '%s'", text);
}

/* Handles argv[*i], a flag, and its value. */
static bool parse_flag(gx_args *args, int argc, char **argv, int *i)
{
    const char *const text = argv[*i];
    const char *const equals = text[1] == '-' ? strchr(text, '=') : NULL;
    const gx_flag *flag =
        find_flag(text, equals ? (size_t)(equals - text) : strlen(text));

    if (!flag || !(flag->commands & args->command->bit)) {
        say_unknown_flag(args, text, flag);
        return false;
    }
    if (flag->kind == GX_FLAG_SWITCH) {
        if (equals) {
            gx_say_usage(args, "%s takes no value", flag->name);
            return false;
        }
        *(bool *)member(args, flag) = true;
        return true;
    }
    if (equals)
        return parse_value(args, flag, equals + 1);
    if (*i + 1 >= argc) {
        gx_say_usage(args, "%s: expected %s", flag->name, flag->value);
        return false;
    }
    return parse_value(args, flag, argv[++*i]);
}

static bool find_command(gx_args *args, const char *name)
{
    const char *names[GX_MAX_FLAGS + 1];
    const char *near;
    size_t n = 0;

    for (; gx_command_at(n) && n < GX_MAX_FLAGS; n++) {
        names[n] = gx_command_at(n)->name;
        if (strcmp(name, names[n]) == 0) {
            args->command = gx_command_at(n);
            return true;
        }
    }
    names[n] = NULL;
    near = gx_near_name(name, names);
    if (near)
        gx_say_usage(args, "unknown command '%s'; did you mean %s?", name, near);
    else
        gx_say_usage(args, "unknown command '%s'", name);
    return false;
}

/* "A [B]": one that is needed, one that may follow. */
static bool check_names(const gx_args *args)
{
    const char *const operands = args->command->operands;
    const size_t most = operands[0] ? strchr(operands, ' ') ? 2 : 1 : 0;

    if (args->n_names > most) {
        gx_say_usage(args, "unexpected '%s'", args->names[most]);
        return false;
    }
    for (size_t i = 0; i < args->n_names; i++)
        if (!*args->names[i]) {
            gx_say_usage(args, "expected %s, found an empty word", operands);
            return false;
        }
    if (operands[0] && operands[0] != '[' && args->n_names == 0) {
        gx_say_usage(args, "expected %s", operands);
        return false;
    }
    return true;
}

static bool check_together(const gx_args *args)
{
    const char *wrong = NULL;

    if (args->graph && args->eager)
        wrong = "--graph and --eager";
    else if (args->target == GX_TARGET_CPU && args->graph)
        wrong = "--device cpu and --graph";
    else if (args->target == GX_TARGET_CPU && args->eager)
        wrong = "--device cpu and --eager";
    else if (args->target == GX_TARGET_CPU && args->gpu >= 0)
        wrong = "--device cpu and --gpu";
    else if (args->eager && args->steps_per_launch != 1)
        wrong = "--eager and --steps-per-launch";
    else if (args->eager && args->skip == GX_ON)
        wrong = "--eager and --skip if";
    else if (args->step_loop == GX_ON && args->steps_per_launch == 1)
        wrong = "--step-loop on and one step a launch";
    else if (args->steps >= 0 && args->epochs >= 0)
        wrong = "--steps and --epochs";
    else if (args->dot && args->yaml)
        wrong = "--dot and --yaml";
    else if ((args->dot || args->yaml) && args->stage != GX_STAGE_ALL)
        wrong = "--dot or --yaml and --stage";
    else if (args->markdown && gx_stdout_is_taken(args))
        wrong = "--markdown and --json -";
    else if (args->blocks && (args->nsys_window || args->evaluate != GX_EVAL_EPOCH))
        wrong = "--blocks and --nsys-window or --evaluate";
    else if (args->blocks && (args->steps >= 0 || args->epochs >= 0))
        wrong = "--blocks and --steps or --epochs";
    else if (args->quiet && args->verbose)
        wrong = "--quiet and --verbose";
    else if (args->blocks && (args->outs.n || args->loss_out || args->json))
        wrong = "--blocks and --out, --loss-out or --json";
    else if (args->target == GX_TARGET_CPU && args->nsys_window)
        wrong = "--device cpu and --nsys-window";
    if (wrong)
        gx_say_usage(args, "%s exclude each other", wrong);
    return !wrong;
}

/* What a flag needs of the others. */
static bool check_alone(const gx_args *args)
{
    if (args->new_state && !args->resume) {
        gx_say_usage(args, "--new-state goes with --resume DIR");
        return false;
    }
    if (count_for_stdout(args) > 1) {
        gx_say_usage(args, "standard output takes one result, not several");
        return false;
    }
    return true;
}

static bool expect_end(const gx_args *args, int argc, char **argv, int n)
{
    if (argc > n)
        gx_say_usage(args, "unexpected '%s'", argv[n]);
    return argc <= n;
}

/* "gexec --help [COMMAND]" */
static bool parse_help(gx_args *args, int argc, char **argv)
{
    args->help = true;
    return (argc == 2 || find_command(args, argv[2])) && expect_end(args, argc, argv, 3);
}

bool gx_args_parse(gx_args *args, int argc, char **argv)
{
    bool flags_end = false;

    *args = defaults;
    args->argc = argc;
    args->argv = argv;
    if (argc < 2) {
        gx_help_print(stderr);
        return false;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return parse_help(args, argc, argv);
    if (strcmp(argv[1], "--version") == 0)
        return expect_end(args, argc, argv, 2);
    if (!find_command(args, argv[1]))
        return false;
    args->names = calloc((size_t)argc, sizeof *args->names);
    args->made = calloc((size_t)argc, sizeof *args->made);
    args->model = calloc(1, sizeof *args->model);
    if (!args->names || !args->made || !args->model)
        return out_of_memory(args);
    for (int i = 2; i < argc; i++) {
        if (!flags_end && strcmp(argv[i], "--") == 0)
            flags_end = true;
        else if (flags_end || argv[i][0] != '-' || !argv[i][1])
            args->names[args->n_names++] = argv[i];
        else if (!parse_flag(args, argc, argv, &i))
            return false;
    }
    return args->help || (check_names(args) && check_together(args) && check_alone(args));
}

void gx_args_free(gx_args *args)
{
    for (size_t i = 0; i < args->n_text; i++)
        free(args->text[i]);
    free(args->text);
    free(args->names);
    if (args->model)
        gx_model_text_free(args->model);
    free(args->model);
    free(args->sets.items);
    free(args->inputs.items);
    free(args->outs.items);
    free(args->made);
    *args = defaults;
}
