// Which instructions this process may use, found once.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "half.h"

namespace localctx {
namespace {

bool has(Simd level) {
    switch (level) {
        case Simd::scalar: return true;
#if defined(__x86_64__)
        case Simd::avx2:
            return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                   __builtin_cpu_supports("f16c") != 0;
        case Simd::avx512:
            return has(Simd::avx2) && __builtin_cpu_supports("avx512f") != 0 &&
                   __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                   __builtin_cpu_supports("avx512vl") != 0;
#elif defined(__aarch64__)
        case Simd::neon: return true;
#endif
        default: return false;
    }
}

const char *name_of(Simd level) {
    switch (level) {
        case Simd::avx512: return "avx512";
        case Simd::avx2: return "avx2";
        case Simd::neon: return "neon";
        default: return "scalar";
    }
}

constexpr Simd kBestFirst[] = {Simd::avx512, Simd::avx2, Simd::neon, Simd::scalar};

Simd find() {
    const char *const wanted = std::getenv("LOCALCTX_SIMD");
    const bool any = wanted == nullptr || *wanted == '\0';
    for (const Simd level : kBestFirst) {
        if (has(level) && (any || std::string(wanted) == name_of(level))) {
            return level;
        }
    }
    throw std::invalid_argument("LOCALCTX_SIMD=" + std::string(wanted) +
                                ": not known, or not supported by this processor");
}

}  // namespace

Simd simd() {
    static const Simd level = find();
    return level;
}

const char *simd_name() { return name_of(simd()); }

}  // namespace localctx
