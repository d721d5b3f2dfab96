#include "abort_flag.h"

#include <cerrno>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <system_error>

namespace {

std::mutex install_mutex;                              // guards installing, never taken in the handler
std::atomic<localctx::AbortFlag *> watching{nullptr};  // the one flag that SIGINT sets
struct sigaction earlier {};                           // written only while our handler is not installed

static_assert(std::atomic<localctx::AbortFlag *>::is_always_lock_free, "read in a signal handler");

extern "C" void localctx_on_sigint(int signal_number, siginfo_t *info, void *context) {
    const int saved_errno = errno;
    if (localctx::AbortFlag *flag = watching.load(std::memory_order_acquire)) {
        flag->set();
    }
    if ((earlier.sa_flags & SA_SIGINFO) != 0) {
        earlier.sa_sigaction(signal_number, info, context);
    } else if (earlier.sa_handler == SIG_DFL) {
        sigaction(signal_number, &earlier, nullptr);
        raise(signal_number);  // delivered, with its default effect, when this handler returns
    } else if (earlier.sa_handler != SIG_IGN) {
        earlier.sa_handler(signal_number);
    }
    errno = saved_errno;
}

bool is_ours(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == localctx_on_sigint;
}

bool is_ignored(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

void check(int status) {
    if (status != 0) {
        throw std::system_error(errno, std::generic_category(), "sigaction(SIGINT)");
    }
}

}  // namespace

extern "C" bool localctx_abort_callback(void *data) {
    return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_acquire);
}

namespace localctx {

void AbortFlag::watch_sigint() {
    const std::lock_guard<std::mutex> lock(install_mutex);
    AbortFlag *const current = watching.load();
    if (current != nullptr && current != this) {
        throw std::logic_error("another AbortFlag is watching SIGINT");
    }
    struct sigaction now {};
    check(sigaction(SIGINT, nullptr, &now));
    if (!is_ours(now) && !is_ignored(now)) {
        earlier = now;
        struct sigaction ours = now;  // keeps the mask and SA_ONSTACK, SA_RESTART as they were
        ours.sa_flags = (now.sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);
        ours.sa_sigaction = localctx_on_sigint;
        check(sigaction(SIGINT, &ours, nullptr));
    }
    watching.store(this);
}

void AbortFlag::unwatch_sigint() noexcept {
    const std::lock_guard<std::mutex> lock(install_mutex);
    if (watching.load() != this) {
        return;
    }
    struct sigaction now {};
    if (sigaction(SIGINT, nullptr, &now) == 0 && is_ours(now)) {
        sigaction(SIGINT, &earlier, nullptr);
    }
    watching.store(nullptr);
}

}  // namespace localctx
