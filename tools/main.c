/* The program: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alternatives.h"
#include "args.h"
#include "destinations.h"
#include "out_folders.h"
#include "profile_pass.h"

/* A file that is opened must not come to stand where a standard stream was closed, for
 * what is printed would go into it. To print is then to fail, as it was, but for
 * messages, which are lost. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    gx_args args;
    int exit_status = GX_EXIT_USAGE;

    fill_standard_streams();
    /* To write past a limit on the size of files then fails like any other write. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], GX_TRACED_PASS) == 0)
        return gx_pass_main(argc, argv);
    if (!gx_args_parse(&args, argc, argv))
        goto done;
    exit_status = GX_EXIT_OK;
    if (!args.command && !args.help)
        printf("gexec %s\n", gx_version());
    else if (!args.command)
        gx_help_print(stdout);
    else if (args.help)
        gx_command_help_print(stdout, args.command);
    else
        exit_status = gx_alternatives_check(&args) && gx_destinations_check(&args)
                          ? args.command->run(&args)
                          : GX_EXIT_USAGE;
    gx_out_folders_drop(&args);
    if (!gx_stdout_finish(&args) && exit_status == GX_EXIT_OK)
        exit_status = GX_EXIT_FAILED;
done:
    gx_args_free(&args);
    return exit_status;
}
