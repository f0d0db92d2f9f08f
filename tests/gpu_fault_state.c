/* The tests of fault_state.c with the real calls behind the replaced ones. */
#define FAULT_REAL true
#include "fault_state.c"
