// The cases, natively; policies/cases_test.go runs them through the runtime.
#include "../kv_evict.c"
#include "stub_cases.h"

int main(int argc, char **argv) { return stub_cases("kv.evict", argc - 1, argv + 1); }
