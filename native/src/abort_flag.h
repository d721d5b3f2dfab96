// A flag that stops running work: read by a C callback, set by any thread or by signals. Knows no Python.
#pragma once

#include <atomic>
#include <vector>

extern "C" bool localctx_abort_callback(void *data);

namespace localctx {

class AbortFlag {
  public:
    AbortFlag() = default;
    ~AbortFlag() { unwatch(); }
    AbortFlag(const AbortFlag &) = delete;
    AbortFlag &operator=(const AbortFlag &) = delete;

    void set() { raised_.store(true, std::memory_order_release); }
    void clear() { raised_.store(false, std::memory_order_release); }
    bool is_set() const { return raised_.load(std::memory_order_acquire); }

    // What localctx_abort_callback is to be given; valid as long as the flag lives.
    void *data() { return &raised_; }

    // These signals also set this flag, then go on to the handlers that were installed before. One that the
    // process ignores stays ignored. Throws std::logic_error while another flag watches, std::system_error
    // when the system refuses.
    void watch(const std::vector<int> &signals);
    // Puts the earlier handlers back, but where a third one has been installed since.
    void unwatch() noexcept;

  private:
    std::atomic<bool> raised_{false};
    static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not take a lock");
};

}  // namespace localctx
