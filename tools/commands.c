/* The table of commands, and help. */

#include "args.h"
#include "flags.h"

static const gx_command commands[] = {
    { "run", "MODEL", "Runs a model: the graph on a GPU, the CPU where there is none",
      "A model with data trains for its epochs and is evaluated on the held-out rows.\n"
      "Without data it runs --steps N steps: 100 when it trains, else 1. The result is "
      "on\n"
      "standard output, progress and remarks on standard error. An interrupt (Ctrl-C)\n"
      "stops after the launches under way, reports what was done, and exits with 130.\n"
      "`--out DIR` saves parameters and state; `--resume DIR` goes on from there, to "
      "the\n"
      "same bits as one run through, given the same --seed.\n",
      "gexec run graphs/examples/digits_mlp.yaml --epochs 10 --json result.json --out "
      "saved\n"
      "  gexec run graphs/examples/digits_mlp.yaml --epochs 10 --resume saved",
      GX_CMD_RUN, gx_cmd_run },
    { "compare", "MODEL",
      "Eager launches against one graph replay, on a GPU: times, costs, and the bits",
      "Eager and graph run in alternating blocks in one process, from one saved state, "
      "in\n"
      "random order, under one rule of synchronization. Exits with 1 when bits differ: "
      "no\n"
      "difference is allowed.\n",
      "gexec compare graphs/examples/mnist_mlp.yaml --pairs 25 --json compare.json",
      GX_CMD_COMPARE, gx_cmd_compare },
    { "sweep", "MODEL", "Compares over sizes, on a GPU: as table, CSV and picture",
      "Each --set may hold a list; every combination is compared in turn, in one "
      "process,\n"
      "with all of one freed before the next. A size that fails is a row with its "
      "reason.\n"
      "The picture has the first list along its axis, and a panel for each combination "
      "of\n"
      "the others. With --plan, each size has a file of its own, FILE.DIM=VALUE. Exits "
      "with\n"
      "1 when bits differ anywhere.\n",
      "gexec sweep graphs/examples/mnist_mlp.yaml --set batch=1,8,64,512 --svg sweep.svg",
      GX_CMD_SWEEP, gx_cmd_sweep },
    { "check", "MODEL",
      "Against the double-precision reference, and gradients against finite differences",
      "One step from one state. Each output, parameter, state and gradient of the CPU, "
      "and\n"
      "of eager and graph on a GPU, is held against the same step in exact doubles; "
      "that\n"
      "step's gradients are held against central differences of the loss. Exits with 1\n"
      "when something is out of tolerance. What is allowed of a tensor is a share of "
      "the\n"
      "root of its sum of squares, by the coarsest type of the model; a parameter is\n"
      "allowed twice the rate besides for the few elements whose gradient is so near 0\n"
      "that rounding turns its sign, which is all that a first step of AdamW goes by.\n"
      "Where terms cancel, as in the gradient of an attention layer's key bias, allowed\n"
      "is also what rounding is measured to make of the tensor. 1e-12 is allowed in any\n"
      "case, so that of smaller numbers nothing is said.\n",
      "gexec check graphs/examples/deep_narrow.yaml --set width=64 --samples 8",
      GX_CMD_CHECK, gx_cmd_check },
    { "plan", "MODEL",
      "The stages of a model: ops, chosen kernels, memory, FLOPs and bytes", "",
      "gexec plan graphs/examples/deep_narrow.yaml --stage selection", GX_CMD_PLAN,
      gx_cmd_plan },
    { "profile", "MODEL",
      "Where the time of a step goes, eagerly and as a graph, on a GPU: gaps, ops, "
      "floors",
      "First the model is timed untraced, as `compare` does. Then eager launches and "
      "the\n"
      "graph are traced, each in a process of its own with the same plan: a cycle is "
      "--wait\n"
      "steps, --warmup steps and --active steps, of which only the last are recorded.\n"
      "Without the CUPTI library, or where it is held by another tool or not permitted, "
      "the\n"
      "timing is reported alone and the exit status is 3.\n",
      "gexec profile graphs/examples/mnist_mlp.yaml --html profile.html --chrome "
      "trace.json",
      GX_CMD_PROFILE, gx_cmd_profile },
    { "nsys", "A [B]",
      "Gaps, launches and ops of any program's Nsight Systems or PyTorch trace",
      "Reads SQLite exports of Nsight Systems (nsys export --type=sqlite), its reports\n"
      "where nsys is installed, and traces of PyTorch's profiler (.json, .json.gz). Two\n"
      "files stand side by side, before against after.\n",
      "gexec nsys eager.sqlite graph.sqlite --csv gaps.csv", GX_CMD_NSYS, gx_cmd_nsys },
    { "ops", "[OP]", "The catalogue of ops, or one of them", "", "gexec ops gemm",
      GX_CMD_OPS, gx_cmd_ops },
    { "doctor", "", "What this machine has and lacks for gexec",
      "Exits with 0 whatever it finds: a model runs on the CPU in any case. --measure\n"
      "finds out what the GPU can do at best (products, copies, launches), which needs\n"
      "one; what it found is kept for the card, and shown from then on.\n",
      "gexec doctor --measure", GX_CMD_DOCTOR, gx_cmd_doctor },
    { "init", "[DIR]",
      "Writes a model to start from, with data, into DIR (default: here)",
      "The model learns to tell three interleaved spirals apart. No file that exists is\n"
      "overwritten.\n",
      "gexec init spirals && gexec run spirals/model.yaml", GX_CMD_INIT, gx_cmd_init },
};

const gx_command *gx_command_at(size_t i)
{
    return i < sizeof commands / sizeof commands[0] ? &commands[i] : NULL;
}

void gx_help_print(FILE *out)
{
    fputs("usage: gexec COMMAND [FLAGS] ...\n\n"
          "gexec runs an op graph from YAML on the CPU, by eager CUDA launches, or as a\n"
          "captured CUDA graph that is replayed, and says what the difference is.\n\n",
          out);
    for (const gx_command *command = commands;
         gx_command_at((size_t)(command - commands)); command++)
        fprintf(out, "  %-8s %-8s %s\n", command->name, command->operands,
                command->summary);
    fputs(
        "\n`gexec COMMAND --help` has the flags and an example; `gexec --version` the\n"
        "version.\n\n"
        "Exit status: 0 done; 1 it ran and the answer is no; 2 bad usage or bad input;\n"
        "3 this machine cannot do it; 4 out of memory, disk, or the device failed;\n"
        "130 interrupted.\n",
        out);
}

void gx_command_help_print(FILE *out, const gx_command *command)
{
    fprintf(out, "usage: gexec %s%s%s [FLAGS]\n\n%s.\n", command->name,
            command->operands[0] ? " " : "", command->operands, command->summary);
    if (command->more[0])
        fprintf(out, "\n%s", command->more);
    fputs("\nflags:\n", out);
    for (size_t i = 0; gx_flag_at(i); i++) {
        const gx_flag *flag = gx_flag_at(i);
        char left[64];

        if (!(flag->commands & command->bit))
            continue;
        snprintf(left, sizeof left, "%s%s%s%s%s", flag->letter ? flag->letter : "",
                 flag->letter ? ", " : "", flag->name, flag->value ? " " : "",
                 flag->value ? flag->value : "");
        fprintf(out, "  %-24s %s\n", left, flag->help);
    }
    fprintf(out, "\nexample:\n  %s\n", command->example);
}
