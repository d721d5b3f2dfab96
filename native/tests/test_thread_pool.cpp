#include "thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

using localctx::parallel_for;

namespace {

bool all_once(std::size_t n, std::size_t n_threads) {
    std::vector<std::atomic<int>> n_calls(n);
    parallel_for(n, [&](std::size_t i) { ++n_calls[i]; }, n_threads);
    for (const auto &calls : n_calls) {
        if (calls != 1) {
            return false;
        }
    }
    return true;
}

void test_every_item_once() {
    for (const std::size_t n : {0U, 1U, 2U, 7U, 5000U}) {
        CHECK(all_once(n, 0) && all_once(n, 1) && all_once(n, 3));
    }
}

// Each item waits until as many threads as asked for are inside.
std::size_t threads_used(std::size_t n_threads, std::size_t n_expected) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    parallel_for(
        64,
        [&](std::size_t) {
            for (;;) {
                {
                    const std::lock_guard<std::mutex> lock(mutex);
                    seen.insert(std::this_thread::get_id());
                    if (seen.size() >= n_expected || std::chrono::steady_clock::now() > until) {
                        return;
                    }
                }
                std::this_thread::yield();
            }
        },
        n_threads);
    return seen.size();
}

void test_as_many_threads_as_asked_for() {
    localctx::set_pool_threads(4);
    CHECK(localctx::pool_threads() == 4);
    CHECK(threads_used(0, 4) == 4 && threads_used(2, 2) == 2 && threads_used(1, 1) == 1);
    CHECK(threads_used(9, 4) == 4);
    localctx::set_pool_threads(2);
    CHECK(threads_used(0, 2) == 2);
    localctx::set_pool_threads(3);
    CHECK(threads_used(0, 3) == 3);
    localctx::set_pool_threads(0);
    CHECK(localctx::pool_threads() == 1 && threads_used(0, 1) == 1);
    localctx::set_pool_threads(4);
}

void test_the_first_exception_comes_out() {
    for (const std::size_t n_threads : {1U, 0U}) {
        std::atomic<int> n_begun{0};
        std::string message;
        try {
            parallel_for(
                100'000,
                [&](std::size_t i) {
                    ++n_begun;
                    if (i >= 10) {
                        throw std::runtime_error("ten");
                    }
                },
                n_threads);
        } catch (const std::runtime_error &error) {
            message = error.what();
        }
        CHECK(message == "ten" && n_begun < 100'000);
    }
    CHECK(all_once(1000, 0));
}

void test_a_loop_inside_a_loop_stays_in_its_thread() {
    for (const std::size_t n_threads : {1U, 0U}) {
        std::atomic<int> n_elsewhere{0};
        parallel_for(
            16,
            [&](std::size_t) {
                const auto here = std::this_thread::get_id();
                parallel_for(16, [&](std::size_t) { n_elsewhere += std::this_thread::get_id() != here; });
            },
            n_threads);
        CHECK(n_elsewhere == 0);
    }
}

void test_several_callers_at_once() {
    std::atomic<int> n_right{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 6; ++caller) {
        callers.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                n_right += all_once(97, round % 2 == 0 ? 0 : 2);
            }
        });
    }
    for (std::thread &caller : callers) {
        caller.join();
    }
    CHECK(n_right == 300);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kForkWhileBusy = false;  // the sanitizer's own locks do not survive it
#else
constexpr bool kForkWhileBusy = true;
#endif

// A child has none of the pool's threads; one forked while the pool is busy cannot trust its mutex either.
void test_a_forked_child_starts_its_own_threads() {
    std::atomic<bool> stop{!kForkWhileBusy};
    std::thread busy([&] {
        while (!stop) {
            parallel_for(64, [](std::size_t) {});
        }
    });
    for (int round = 0; round < 20; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(localctx::pool_threads() == 4 && threads_used(0, 4) == 4 && all_once(100, 0) ? 0 : 1);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    busy.join();
}

}  // namespace

int main() {
    test_every_item_once();
    test_as_many_threads_as_asked_for();
    test_the_first_exception_comes_out();
    test_a_loop_inside_a_loop_stays_in_its_thread();
    test_several_callers_at_once();
    test_a_forked_child_starts_its_own_threads();
    return n_failed != 0;
}
