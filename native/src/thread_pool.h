// One pool of threads for all of the core: a loop over independent items, cut among them. Knows no Python.
#pragma once

#include <cstddef>
#include <functional>

namespace localctx {

// Calls work(i) for every i in [0, n), from up to n_threads threads (0: all of the pool), the caller being one
// of them; returns when all are done. The first exception is rethrown. Calls from several threads are safe;
// a call from inside `work` runs in that thread alone. Threads start at first use, and anew after a fork.
void parallel_for(std::size_t n, const std::function<void(std::size_t)> &work, std::size_t n_threads = 0);

void set_pool_threads(std::size_t n);
std::size_t pool_threads();

}  // namespace localctx
