/* The tests of fault_capture.c with the real calls behind the replaced ones. */
#define FAULT_REAL true
#include "fault_capture.c"
