// The cases, natively; policies/cases_test.go runs them through the runtime.
#include "../kv_prefetch.c"
#include "stub_cases.h"

int main(int argc, char **argv) { return stub_cases("kv.prefetch", argc - 1, argv + 1); }
