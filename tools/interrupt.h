/* Ctrl-C: remembered, so that a command stops between launches and reports. */
#ifndef GX_INTERRUPT_H
#define GX_INTERRUPT_H

#include <stdbool.h>

/* From here on the first SIGINT or SIGTERM is remembered; a second one ends the program.
 */
void gx_interrupt_watch(void);
bool gx_interrupted(void);

#endif
