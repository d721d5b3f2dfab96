#include "abort_flag.h"

#include <csignal>
#include <stdexcept>
#include <thread>

#include "check.h"

using localctx::AbortFlag;

namespace {

volatile std::sig_atomic_t n_handled = 0;
volatile std::sig_atomic_t n_other = 0;

extern "C" void count_signal(int) { n_handled = n_handled + 1; }
extern "C" void count_other(int) { n_other = n_other + 1; }

void test_callback_reads_the_flag() {
    AbortFlag flag;
    CHECK(!localctx_abort_callback(flag.data()));
    std::thread([&] { flag.set(); }).join();
    CHECK(localctx_abort_callback(flag.data()) && flag.is_set());
    flag.clear();
    CHECK(!localctx_abort_callback(flag.data()));
}

void test_sigint_sets_the_flag_and_goes_on() {
    std::signal(SIGINT, count_signal);
    AbortFlag flag;
    flag.watch_sigint();
    flag.watch_sigint();  // twice is once
    std::raise(SIGINT);
    CHECK(flag.is_set() && n_handled == 1);
    flag.clear();
    flag.unwatch_sigint();
    flag.unwatch_sigint();
    std::raise(SIGINT);
    CHECK(!flag.is_set() && n_handled == 2);
}

void test_one_flag_watches_at_a_time() {
    AbortFlag first;
    AbortFlag second;
    first.watch_sigint();
    bool refused = false;
    try {
        second.watch_sigint();
    } catch (const std::logic_error &) {
        refused = true;
    }
    CHECK(refused);
    second.unwatch_sigint();  // not the watcher: changes nothing
    std::raise(SIGINT);
    CHECK(first.is_set() && !second.is_set());
    first.unwatch_sigint();
    second.watch_sigint();
    std::raise(SIGINT);
    CHECK(second.is_set());
}

void test_a_later_handler_is_left_alone() {
    std::signal(SIGINT, count_signal);
    AbortFlag flag;
    flag.watch_sigint();
    std::signal(SIGINT, count_other);
    flag.unwatch_sigint();
    n_other = 0;
    std::raise(SIGINT);
    CHECK(n_other == 1 && !flag.is_set());
}

void test_a_flag_that_dies_stops_watching() {
    std::signal(SIGINT, count_signal);
    { AbortFlag().watch_sigint(); }
    n_handled = 0;
    std::raise(SIGINT);
    CHECK(n_handled == 1);
}

void test_ignored_stays_ignored() {
    std::signal(SIGINT, SIG_IGN);
    AbortFlag flag;
    flag.watch_sigint();
    std::raise(SIGINT);
    CHECK(!flag.is_set());
    flag.unwatch_sigint();
    CHECK(std::signal(SIGINT, SIG_DFL) == SIG_IGN);
}

}  // namespace

int main() {
    test_callback_reads_the_flag();
    test_sigint_sets_the_flag_and_goes_on();
    test_one_flag_watches_at_a_time();
    test_a_later_handler_is_left_alone();
    test_a_flag_that_dies_stops_watching();
    test_ignored_stays_ignored();
    return n_failed;
}
