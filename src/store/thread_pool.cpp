#include "store/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/check.h"
#include "store/constants.h"

namespace motley::store {
struct ThreadPool::Job {
  const Work& work;
  std::size_t pieces;
  std::atomic<std::size_t> next{0};
  std::once_flag failed_first{};
  std::exception_ptr failure{};

  void take_pieces() {
    try {
      for (std::size_t piece = next++; piece < pieces; piece = next++) work(piece);
    } catch (...) {
      next = pieces;
      std::call_once(failed_first, [&] { failure = std::current_exception(); });
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) {
  check(threads >= 1, "a pool includes the calling thread");
  for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { run_worker(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_offered_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::size_t pieces, const Work& work) {
  if (workers_.empty() || pieces <= 1) {
    for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
    return;
  }
  Job job{work, pieces};
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++jobs_;
  }
  for (std::size_t i = std::min(pieces - 1, workers_.size()); i > 0; --i) job_offered_.notify_one();
  job.take_pieces();
  {
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // workers that wake up from now on do not enter
    workers_done_.wait(lock, [this] { return active_ == 0; });
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadPool::run_worker() {
  std::size_t last_job = 0;  // number of the job it entered last
  std::unique_lock lock(mutex_);
  for (;;) {
    job_offered_.wait(lock, [&] { return stopping_ || (job_ != nullptr && jobs_ != last_job); });
    if (stopping_) return;
    Job& job = *job_;
    last_job = jobs_;
    ++active_;
    lock.unlock();
    job.take_pieces();
    lock.lock();
    if (--active_ == 0) workers_done_.notify_one();
  }
}

std::size_t useful_threads(std::size_t values, std::size_t available) {
  const std::size_t worthwhile = values / (2 * piece_values);  // at least two pieces per thread
  return std::clamp<std::size_t>(std::min(worthwhile, available), 1, max_useful_threads);
}

}  // namespace motley::store
