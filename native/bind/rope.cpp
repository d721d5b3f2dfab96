#include "rope.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "bind.h"
#include "thread_pool.h"

namespace nb = nanobind;

namespace localctx {
namespace {

constexpr std::size_t kPieceRows = 128;

void make(Rope *self, const ArrayIn<double, 1> &frequencies, std::uint32_t head_dim, bool neox, double magnitude) {
    Rope rope;
    rope.frequencies.assign(frequencies.data(), frequencies.data() + frequencies.shape(0));
    rope.head_dim = head_dim;
    rope.neox = neox;
    rope.magnitude = magnitude;
    for (const double frequency : rope.frequencies) {
        if (!std::isfinite(frequency)) {
            throw std::invalid_argument("a frequency is not finite");
        }
    }
    if (head_dim == 0 || rope.n_rot() > head_dim) {
        throw std::invalid_argument(std::to_string(rope.n_rot()) + " rotated dimensions in heads of " +
                                    std::to_string(head_dim));
    }
    if (!(magnitude > 0.0) || !std::isfinite(magnitude)) {
        throw std::invalid_argument("magnitude must be positive");
    }
    new (self) Rope(std::move(rope));
}

nb::object turn(const Rope &rope, const ArrayIn<Half, 2> &keys, const Positions &positions, bool inverse) {
    const std::size_t n_tokens = keys.shape(0), n_elements = keys.shape(1);
    if (positions.shape(0) != n_tokens || n_elements % rope.head_dim != 0) {
        throw std::invalid_argument("keys are [n_tokens, n_heads * head_dim], positions [n_tokens]");
    }
    const auto out = ArrayOut<std::uint16_t>::make("float16", n_tokens, n_elements);
    const auto *const in = reinterpret_cast<const std::uint16_t *>(keys.data());
    const nb::gil_scoped_release released;
    parallel_for((n_tokens + kPieceRows - 1) / kPieceRows, [&](std::size_t piece) {
        const std::size_t first = piece * kPieceRows, n = std::min(kPieceRows, n_tokens - first);
        const std::int32_t *const at = positions.data() + first;
        const Turn by = inverse ? turn_from(rope, at, n) : turn_to(rope, at, n);
        for (std::size_t row = 0; row < n; ++row) {
            const std::size_t start = (first + row) * n_elements;
            turn_row_f16(by, row, in + start, out.data + start, n_elements);
        }
    });
    return out.array;
}

}  // namespace

void bind_rope(nb::module_ &module) {
    nb::class_<Rope>(module, "Rope", "The rotation of keys by position.")
        .def("__init__", &make, nb::arg("frequencies").noconvert(), nb::arg("head_dim"), nb::kw_only(), nb::arg("neox"),
             nb::arg("magnitude") = 1.0)
        .def_ro("head_dim", &Rope::head_dim)
        .def_prop_ro("n_rot", &Rope::n_rot)
        .def("turn", &turn, nb::arg("keys").noconvert(), nb::arg("positions").noconvert(), nb::kw_only(),
             nb::arg("inverse") = false, "Keys [n_tokens, n_heads * head_dim] rotated to `positions`, or back from them.");
}

}  // namespace localctx
