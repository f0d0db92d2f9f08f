/* A file that is made beside the one whose place it takes when it is whole. */
#ifndef GX_BESIDE_H
#define GX_BESIDE_H

/* What the name of such a file is longer than that of the other, its end included. */
enum { GX_BESIDE_ROOM = 40 };

/* Makes a new file for writing beside `path`. Its name goes to `name`, which has room for
 * strlen(path) + GX_BESIDE_ROOM. Not mkstemp, whose files are private. -1 with errno:
 * there is none. The caller renames or unlinks it. */
int gx_open_beside(const char *path, char *name);

#endif
