/* The tests of fault_refusal.c with the real calls behind the replaced ones. */
#define FAULT_REAL true
#include "fault_refusal.c"
