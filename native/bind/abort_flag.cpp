#include "abort_flag.h"

#include <nanobind/stl/vector.h>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {

void bind_abort_flag(nb::module_ &module) {
    nb::class_<AbortFlag>(module, "AbortFlag",
                          "An atomic flag, its C abort callback and its data pointer; must outlive the context "
                          "that was given them.")
        .def(nb::init<>())
        .def("set", &AbortFlag::set)
        .def("clear", &AbortFlag::clear)
        .def_prop_ro("is_set", &AbortFlag::is_set)
        .def_prop_ro("callback_address",
                     [](AbortFlag &) { return reinterpret_cast<std::uintptr_t>(&localctx_abort_callback); })
        .def_prop_ro("data_address",
                     [](AbortFlag &flag) { return reinterpret_cast<std::uintptr_t>(flag.data()); })
        .def("watch", &AbortFlag::watch, nb::arg("signals"),
             "From now until unwatch(), these signals also set this flag, before Python's own handlers.")
        .def("unwatch", &AbortFlag::unwatch);
}

}  // namespace localctx
