/* A folder of results is written by one process at a time, and read by none meanwhile. */
#ifndef GX_FOLDER_LOCK_H
#define GX_FOLDER_LOCK_H

#include <stdbool.h>

/* Waits until no other process writes to `folder`, and with `alone` until none reads it.
 * The lock is the descriptor's, so that it ends with its process, however that ends.
 * Gives the descriptor for gx_folder_unlock, or -1 where the folder cannot be opened or
 * its file system has no locks: it is then used without. */
int gx_folder_lock(const char *folder, bool alone);
/* -1 is nothing. */
void gx_folder_unlock(int lock);

#endif
