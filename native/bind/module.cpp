#include "bind.h"

#ifndef LOCALCTX_VERSION
#define LOCALCTX_VERSION "0+unknown"
#endif

NB_MODULE(_native, module) {
    // A process that is ended by a signal does not unwind its threads: what they hold is no news to its user.
    nanobind::set_leak_warnings(false);
    module.doc() = "The C++ core. Buffers are read with the GIL released; offsets are 64-bit.";
    module.attr("__version__") = LOCALCTX_VERSION;
    localctx::bind_abort_flag(module);
    localctx::bind_kv_source(module);
    localctx::bind_log(module);
    localctx::bind_rope(module);  // what follows takes a Rope
    localctx::bind_query_capture(module);
    localctx::bind_state(module);
    localctx::bind_codec(module);
    localctx::bind_compose(module);
    localctx::bind_scan(module);
    localctx::bind_threads(module);
    localctx::bind_utf8(module);
    localctx::bind_utf8_index(module);
}
