#include "compose.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

using Blob = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr const char *kPart = "a part is (State or Run, first, n)";

std::size_t not_negative(nb::handle number, const char *name) {
    std::int64_t value = 0;
    if (!nb::try_cast(number, value, false)) {
        throw nb::type_error(kPart);
    }
    if (value < 0) {
        throw std::invalid_argument(std::string(name) + " must not be negative");
    }
    return static_cast<std::size_t>(value);
}

// The parts, and references that hold their sources while the GIL is released.
struct Parts {
    std::vector<ComposePart> parts;
    nb::list held;

    explicit Parts(nb::handle sequence) {
        for (const nb::handle item : nb::iter(sequence)) {
            nb::tuple part;
            if (!nb::try_cast(item, part, false) || part.size() != 3) {
                throw nb::type_error(kPart);
            }
            const KVSource *source = nullptr;
            if (!nb::try_cast(part[0], source, false) || source == nullptr) {
                throw nb::type_error(kPart);
            }
            held.append(part[0]);
            parts.push_back({source, not_negative(part[1], "first"), not_negative(part[2], "n")});
        }
    }
};

std::uint8_t *checked(const Blob &out, std::size_t size) {
    if (out.size() != size) {
        throw std::invalid_argument("out has " + std::to_string(out.size()) + " bytes, the state " +
                                    std::to_string(size));
    }
    if (reinterpret_cast<std::uintptr_t>(out.data()) % alignof(std::uint16_t) != 0) {
        throw std::invalid_argument("out begins at an odd address");
    }
    return out.data();
}

nb::object compose_parts(const State &like, nb::handle sequence, const Positions &positions, const Rope &rope,
                         std::size_t n_threads, nb::handle given) {
    const Parts parts(sequence);
    const std::size_t n = positions.shape(0), size = composed_size(like, n);
    ArrayOut<std::uint8_t> out;
    Blob buffer;
    if (given.is_none()) {
        out = ArrayOut<std::uint8_t>::make("uint8", size);
    } else {
        if (!nb::try_cast(given, buffer, false)) {
            throw nb::type_error("out is a writable, contiguous array of uint8 with one dimension");
        }
        out = {nb::borrow(given), checked(buffer, size)};
    }
    const nb::gil_scoped_release released;
    compose(like, parts.parts, positions.data(), n, rope, out.data, n_threads);
    return out.array;
}

std::size_t size_of(const State &like, std::int64_t n_tokens) {
    if (n_tokens < 0) {
        throw std::invalid_argument("n_tokens must not be negative");
    }
    return composed_size(like, static_cast<std::size_t>(n_tokens));
}

}  // namespace

void bind_compose(nb::module_ &module) {
    module.def("compose", &compose_parts, nb::arg("like"), nb::arg("parts"), nb::arg("positions").noconvert(),
               nb::arg("rope"), nb::kw_only(), nb::arg("n_threads") = 0, nb::arg("out") = nb::none(),
               "A state blob of `like`'s layout that holds the rows of the parts, in order, at `positions`.");
    module.def("state_size", &size_of, nb::arg("like"), nb::arg("n_tokens"), "Bytes of a composed blob of n_tokens.");
}

}  // namespace localctx
