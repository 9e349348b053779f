// The cases, natively; policies/cases_test.go runs them through the runtime.
#include "../router_hint.c"
#include "stub_cases.h"

int main(int argc, char **argv) { return stub_cases("", argc - 1, argv + 1); }
