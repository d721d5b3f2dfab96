// The whole test framework: CHECK counts failures, and main returns them.
#pragma once

#include <cstdio>

inline int n_failed = 0;

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            ++n_failed;                                                                \
        }                                                                              \
    } while (false)
