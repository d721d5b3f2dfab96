#include "thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace localctx {
namespace {

thread_local bool working = false;  // this thread is inside `work`

class Working {
  public:
    Working() : earlier_(working) { working = true; }
    ~Working() { working = earlier_; }
    Working(const Working &) = delete;
    Working &operator=(const Working &) = delete;

  private:
    bool earlier_;
};

std::size_t usable_cpus() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
    }
#endif
    return std::max(1U, std::thread::hardware_concurrency());
}

// One parallel loop; lives on its caller's stack until no helper is left in it.
struct Job {
    const std::function<void(std::size_t)> *work;
    std::size_t n;
    std::size_t n_helpers_wanted;
    std::size_t n_helpers = 0;  // guarded by the pool's mutex
    std::atomic<std::size_t> next{0};
    std::exception_ptr error{};  // guarded by the pool's mutex
};

class Pool {
  public:
    void run(Job &job) {
        std::unique_lock<std::mutex> lock(mutex_);
        start(std::min(size_ - 1, job.n_helpers_wanted));
        jobs_.push_back(&job);
        wake_.notify_all();
        lock.unlock();
        take_part(job);
        lock.lock();
        jobs_.remove(&job);
        done_.wait(lock, [&] { return job.n_helpers == 0; });
    }

    void resize(std::size_t n) {
        const std::lock_guard<std::mutex> lock(mutex_);
        size_ = n;
        wake_.notify_all();
    }

    std::size_t size() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return size_;
    }

  private:
    // With the mutex held. A system that refuses another thread leaves the loop to those there are.
    void start(std::size_t n_threads) {
        try {
            while (n_alive_ < n_threads) {
                std::thread([this] { serve(); }).detach();
                ++n_alive_;
            }
        } catch (const std::system_error &) {
            return;
        }
    }

    void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            Job *job = nullptr;
            wake_.wait(lock, [&] { return n_alive_ >= size_ || (job = next_job()) != nullptr; });
            if (n_alive_ >= size_) {
                --n_alive_;
                return;
            }
            ++job->n_helpers;
            lock.unlock();
            take_part(*job);
            lock.lock();
            if (--job->n_helpers == 0) {
                done_.notify_all();
            }
        }
    }

    Job *next_job() {
        for (Job *const job : jobs_) {
            if (job->n_helpers < job->n_helpers_wanted && job->next.load() < job->n) {
                return job;
            }
        }
        return nullptr;
    }

    void take_part(Job &job) {
        const Working now;
        for (std::size_t i = job.next++; i < job.n; i = job.next++) {
            try {
                (*job.work)(i);
            } catch (...) {
                job.next.store(job.n);  // the rest is not begun
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!job.error) {
                    job.error = std::current_exception();
                }
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::list<Job *> jobs_;
    std::size_t size_ = usable_cpus();
    std::size_t n_alive_ = 0;
};

// The pool is never destroyed: its threads may outlive every static object. A forked child has none of its
// threads and cannot trust its mutex, so it leaves that pool and makes another of the same size.
std::mutex make_mutex;
Pool *pool = nullptr;
std::atomic<std::size_t> wanted_size{0};  // 0: as many as there are CPUs

void forget_pool() {
    new (&make_mutex) std::mutex;
    pool = nullptr;
}

Pool &the_pool() {
    const std::lock_guard<std::mutex> lock(make_mutex);
    if (pool == nullptr) {
        static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
        static_cast<void>(registered);
        pool = new Pool;
        if (const std::size_t n = wanted_size.load()) {
            pool->resize(n);
        }
    }
    return *pool;
}

}  // namespace

void parallel_for(std::size_t n, const std::function<void(std::size_t)> &work, std::size_t n_threads) {
    const std::size_t n_wanted = std::min(n, n_threads == 0 ? n : n_threads);
    if (n_wanted <= 1 || working) {
        const Working now;
        for (std::size_t i = 0; i < n; ++i) {
            work(i);
        }
        return;
    }
    Job job{&work, n, n_wanted - 1};
    the_pool().run(job);
    if (job.error) {
        std::rethrow_exception(job.error);
    }
}

void set_pool_threads(std::size_t n) {
    wanted_size.store(std::max<std::size_t>(1, n));
    the_pool().resize(std::max<std::size_t>(1, n));
}

std::size_t pool_threads() { return the_pool().size(); }

}  // namespace localctx
