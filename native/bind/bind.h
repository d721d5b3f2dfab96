// What the files of this folder share: one function per C++ noun, and the view of a Python buffer.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace localctx {

void bind_abort_flag(nanobind::module_ &module);
void bind_codec(nanobind::module_ &module);
void bind_compose(nanobind::module_ &module);
void bind_kv_source(nanobind::module_ &module);
void bind_log(nanobind::module_ &module);
void bind_query_capture(nanobind::module_ &module);
void bind_rope(nanobind::module_ &module);
void bind_scan(nanobind::module_ &module);
void bind_state(nanobind::module_ &module);
void bind_threads(nanobind::module_ &module);
void bind_utf8(nanobind::module_ &module);
void bind_utf8_index(nanobind::module_ &module);

// A contiguous, read-only view of a Python object's bytes; holds the buffer while it lives (GIL needed to
// make and to drop it, not to read it). Raises Python's own error for objects without such a buffer.
class ByteView {
  public:
    explicit ByteView(nanobind::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            throw nanobind::python_error();
        }
    }
    ~ByteView() { PyBuffer_Release(&view_); }
    ByteView(const ByteView &) = delete;
    ByteView &operator=(const ByteView &) = delete;

    const std::uint8_t *data() const { return static_cast<const std::uint8_t *>(view_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

  private:
    Py_buffer view_{};
};

// The view of a buffer that a C++ object is to keep; made, and dropped with its owner, under the GIL.
inline std::shared_ptr<const ByteView> keep_bytes(nanobind::handle object) {
    return std::make_shared<const ByteView>(object);
}

// Arrays that come in: contiguous, of exactly that type.
using Positions = nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T, int n_dim>
using ArrayIn = nanobind::ndarray<const T, nanobind::ndim<n_dim>, nanobind::c_contig, nanobind::device::cpu>;

// IEEE binary16 as NumPy arrays that come in have it; read it as std::uint16_t bit patterns.
struct Half {
    std::uint16_t bits;
};

// A fresh NumPy array and its memory.
template <typename T>
struct ArrayOut {
    nanobind::object array;
    T *data = nullptr;

    template <typename... Sizes>
    static ArrayOut make(const char *dtype, Sizes... sizes) {
        ArrayOut out;
        const nanobind::object numpy = nanobind::module_::import_("numpy");
        out.array = numpy.attr("empty")(nanobind::make_tuple(sizes...), dtype);
        const auto view = nanobind::cast<nanobind::ndarray<nanobind::c_contig, nanobind::device::cpu>>(out.array);
        out.data = static_cast<T *>(view.data());
        return out;
    }
};

}  // namespace localctx

template <>
struct nanobind::detail::dtype_traits<localctx::Half> {
    static constexpr dlpack::dtype value{static_cast<std::uint8_t>(dlpack::dtype_code::Float), 16, 1};
    static constexpr auto name = const_name("float16");
};
