#include "kv_source.h"

#include "bind.h"

namespace nb = nanobind;

namespace localctx {

void bind_kv_source(nb::module_ &module) {
    nb::class_<KVSource>(module, "KVSource", "Rows of KV of consecutive tokens: a Run or a State.");
}

}  // namespace localctx
