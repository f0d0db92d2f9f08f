/* The tests of fault_exec.c with the real calls behind the replaced ones. */
#define FAULT_REAL true
#include "fault_exec.c"
