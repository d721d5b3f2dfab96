#include <stdexcept>

#include "bind.h"
#include "half.h"
#include "thread_pool.h"

namespace nb = nanobind;

namespace localctx {
namespace {

void set_threads(std::int64_t n_threads) {
    if (n_threads < 1) {
        throw std::invalid_argument("n_threads must be at least 1");
    }
    set_pool_threads(static_cast<std::size_t>(n_threads));
}

}  // namespace

void bind_threads(nb::module_ &module) {
    module.def("set_threads", &set_threads, nb::arg("n_threads"),
               "Size of the pool that encode, compose and scan share; default: the CPUs this process may use.");
    module.def("simd_level", [] { return nb::str(simd_name()); }, "The instructions in use.");
}

}  // namespace localctx
