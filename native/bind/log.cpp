#include "log.h"

#include "bind.h"

namespace nb = nanobind;

namespace localctx {

void bind_log(nb::module_ &module) {
    module.attr("ignore_log_address") = reinterpret_cast<std::uintptr_t>(&localctx_ignore_log);
}

}  // namespace localctx
