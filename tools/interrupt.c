/* Ctrl-C: remembered, so that a command stops between launches and reports. */
#include "interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t seen;

static void remember(int number)
{
    (void)number;
    seen = 1;
}

void gx_interrupt_watch(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool gx_interrupted(void)
{
    return seen != 0;
}
