/* The gate between captures and calls that wait for the whole device. */
#include "capture_gate.h"

#include <pthread.h>

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

void gx_capture_enter(void)
{
    (void)pthread_rwlock_rdlock(&gate);
}

void gx_capture_leave(void)
{
    (void)pthread_rwlock_unlock(&gate);
}

void gx_device_wide_enter(void)
{
    (void)pthread_rwlock_wrlock(&gate);
}

void gx_device_wide_leave(void)
{
    (void)pthread_rwlock_unlock(&gate);
}
