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

void test_a_signal_sets_the_flag_and_goes_on() {
    std::signal(SIGINT, count_signal);
    AbortFlag flag;
    flag.watch({SIGINT});
    flag.watch({SIGINT});  // twice is once
    std::raise(SIGINT);
    CHECK(flag.is_set() && n_handled == 1);
    flag.clear();
    flag.unwatch();
    flag.unwatch();
    std::raise(SIGINT);
    CHECK(!flag.is_set() && n_handled == 2);
}

void test_each_signal_goes_on_to_its_own_handler() {
    std::signal(SIGINT, count_signal);
    std::signal(SIGTERM, count_other);
    n_handled = n_other = 0;
    AbortFlag flag;
    flag.watch({SIGINT, SIGTERM});
    std::raise(SIGTERM);
    CHECK(flag.is_set() && n_handled == 0 && n_other == 1);
    flag.clear();
    std::raise(SIGINT);
    CHECK(flag.is_set() && n_handled == 1 && n_other == 1);
    flag.clear();
    flag.unwatch();
    std::raise(SIGTERM);
    CHECK(!flag.is_set() && n_other == 2);
    bool refused = false;
    try {
        flag.watch({SIGINT, NSIG});
    } catch (const std::invalid_argument &) {
        refused = true;
    }
    CHECK(refused);
    std::raise(SIGINT);
    CHECK(!flag.is_set());
    std::signal(SIGTERM, SIG_DFL);
}

void test_one_flag_watches_at_a_time() {
    AbortFlag first;
    AbortFlag second;
    first.watch({SIGINT});
    bool refused = false;
    try {
        second.watch({SIGINT});
    } catch (const std::logic_error &) {
        refused = true;
    }
    CHECK(refused);
    second.unwatch();  // not the watcher: changes nothing
    std::raise(SIGINT);
    CHECK(first.is_set() && !second.is_set());
    first.unwatch();
    second.watch({SIGINT});
    std::raise(SIGINT);
    CHECK(second.is_set());
}

void test_a_later_handler_is_left_alone() {
    std::signal(SIGINT, count_signal);
    AbortFlag flag;
    flag.watch({SIGINT});
    std::signal(SIGINT, count_other);
    flag.unwatch();
    n_other = 0;
    std::raise(SIGINT);
    CHECK(n_other == 1 && !flag.is_set());
}

void test_a_flag_that_dies_stops_watching() {
    std::signal(SIGINT, count_signal);
    { AbortFlag().watch({SIGINT}); }
    n_handled = 0;
    std::raise(SIGINT);
    CHECK(n_handled == 1);
}

void test_ignored_stays_ignored() {
    std::signal(SIGINT, SIG_IGN);
    AbortFlag flag;
    flag.watch({SIGINT});
    std::raise(SIGINT);
    CHECK(!flag.is_set());
    flag.unwatch();
    CHECK(std::signal(SIGINT, SIG_DFL) == SIG_IGN);
}

}  // namespace

int main() {
    test_callback_reads_the_flag();
    test_a_signal_sets_the_flag_and_goes_on();
    test_each_signal_goes_on_to_its_own_handler();
    test_one_flag_watches_at_a_time();
    test_a_later_handler_is_left_alone();
    test_a_flag_that_dies_stops_watching();
    test_ignored_stays_ignored();
    return n_failed;
}
