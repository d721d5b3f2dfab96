// What the files of this folder share: one function per C++ noun, and the view of a Python buffer.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace localctx {

void bind_abort_flag(nanobind::module_ &module);
void bind_log(nanobind::module_ &module);
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

}  // namespace localctx
