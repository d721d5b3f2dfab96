#include "abort_flag.h"

#include <bitset>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <system_error>

namespace {

std::mutex install_mutex;                              // guards installing, never taken in the handler
std::atomic<localctx::AbortFlag *> watching{nullptr};  // the one flag that signals set
struct sigaction earlier[NSIG] {};                     // by signal; written only while our handler is not its
std::bitset<NSIG> installed;                           // where our handler may be

static_assert(std::atomic<localctx::AbortFlag *>::is_always_lock_free, "read in a signal handler");

extern "C" void localctx_on_signal(int signal_number, siginfo_t *info, void *context) {
    const int saved_errno = errno;
    if (localctx::AbortFlag *flag = watching.load(std::memory_order_acquire)) {
        flag->set();
    }
    const struct sigaction &next = earlier[signal_number];
    if ((next.sa_flags & SA_SIGINFO) != 0) {
        next.sa_sigaction(signal_number, info, context);
    } else if (next.sa_handler == SIG_DFL) {
        sigaction(signal_number, &next, nullptr);
        raise(signal_number);  // delivered, with its default effect, when this handler returns
    } else if (next.sa_handler != SIG_IGN) {
        next.sa_handler(signal_number);
    }
    errno = saved_errno;
}

bool is_ours(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == localctx_on_signal;
}

bool is_ignored(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

void check(int status) {
    if (status != 0) {
        throw std::system_error(errno, std::generic_category(), "sigaction()");
    }
}

void install(int signal_number) {
    struct sigaction now {};
    check(sigaction(signal_number, nullptr, &now));
    if (is_ours(now)) {
        installed.set(static_cast<std::size_t>(signal_number));
        return;
    }
    if (is_ignored(now)) {
        return;
    }
    earlier[signal_number] = now;
    struct sigaction ours = now;  // keeps the mask and SA_ONSTACK, SA_RESTART as they were
    ours.sa_flags = (now.sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);
    ours.sa_sigaction = localctx_on_signal;
    check(sigaction(signal_number, &ours, nullptr));
    installed.set(static_cast<std::size_t>(signal_number));
}

void put_back() noexcept {
    for (std::size_t number = 1; number < installed.size(); ++number) {
        const int signal_number = static_cast<int>(number);
        struct sigaction now {};
        if (installed.test(number) && sigaction(signal_number, nullptr, &now) == 0 && is_ours(now)) {
            sigaction(signal_number, &earlier[signal_number], nullptr);
        }
    }
    installed.reset();
}

}  // namespace

extern "C" bool localctx_abort_callback(void *data) {
    return static_cast<std::atomic<bool> *>(data)->load(std::memory_order_acquire);
}

namespace localctx {

void AbortFlag::watch(const std::vector<int> &signals) {
    const std::lock_guard<std::mutex> lock(install_mutex);
    AbortFlag *const current = watching.load();
    if (current != nullptr && current != this) {
        throw std::logic_error("another AbortFlag is watching");
    }
    for (const int signal_number : signals) {
        if (signal_number < 1 || signal_number >= NSIG) {
            throw std::invalid_argument("no signal has this number");
        }
    }
    watching.store(this);
    try {
        for (const int signal_number : signals) {
            install(signal_number);
        }
    } catch (...) {
        put_back();
        watching.store(nullptr);
        throw;
    }
}

void AbortFlag::unwatch() noexcept {
    const std::lock_guard<std::mutex> lock(install_mutex);
    if (watching.load() != this) {
        return;
    }
    put_back();
    watching.store(nullptr);
}

}  // namespace localctx
