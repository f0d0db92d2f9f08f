/* The cuBLASLt handles, one for each GPU that has a program open. */
#include "lt_handle.h"

#include <pthread.h>
#include <stdlib.h>

#include "launch.h"

typedef struct shared_handle {
    struct shared_handle *next;
    int ordinal;
    long n_users;
    cublasLtHandle_t lt;
} shared_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shared_handle *handles;

static shared_handle **find(int ordinal)
{
    shared_handle **at = &handles;

    while (*at && (*at)->ordinal != ordinal)
        at = &(*at)->next;
    return at;
}

static gx_status add(int ordinal, shared_handle **at, gx_error *err)
{
    shared_handle *made = calloc(1, sizeof *made);

    if (!made)
        return GX_FAIL(err, GX_ERR_MEMORY, "out of host memory");
    const gx_status st = GX_CUBLAS(cublasLtCreate(&made->lt), err);
    if (st != GX_OK) {
        free(made);
        return st;
    }
    made->ordinal = ordinal;
    *at = made;
    return GX_OK;
}

gx_status gx_lt_handle_acquire(int ordinal, void **lt, gx_error *err)
{
    gx_status st = GX_OK;

    *lt = NULL;
    (void)pthread_mutex_lock(&lock);
    shared_handle **at = find(ordinal);
    if (!*at)
        st = add(ordinal, at, err);
    if (st == GX_OK) {
        (*at)->n_users++;
        *lt = (*at)->lt;
    }
    (void)pthread_mutex_unlock(&lock);
    return st;
}

void gx_lt_handle_release(int ordinal)
{
    (void)pthread_mutex_lock(&lock);
    shared_handle **at = find(ordinal);
    shared_handle *handle = *at;
    if (handle && --handle->n_users == 0) {
        *at = handle->next;
        (void)GX_CUBLAS(cublasLtDestroy(handle->lt), NULL);
        free(handle);
    }
    (void)pthread_mutex_unlock(&lock);
}
