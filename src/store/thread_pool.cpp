#include "store/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/check.h"

namespace motley::store {
namespace {

constexpr std::size_t enough_threads = 8;  // to be bound by memory on the machines we know

}  // namespace

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
  check(threads >= 1, "a team has at least the one who calls it");
  for (std::size_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  offered_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::parallel_for(std::size_t pieces, const Work& work) {
  if (helpers_.empty() || pieces <= 1) {
    for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
    return;
  }
  Job job{work, pieces};
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++jobs_;
  }
  for (std::size_t i = std::min(pieces - 1, helpers_.size()); i > 0; --i) offered_.notify_one();
  job.take_pieces();
  {
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // who wakes up only now has come too late
    left_.wait(lock, [this] { return inside_ == 0; });
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadPool::help() {
  std::size_t helped = 0;  // with which job last
  std::unique_lock lock(mutex_);
  for (;;) {
    offered_.wait(lock, [&] { return stopping_ || (job_ != nullptr && jobs_ != helped); });
    if (stopping_) return;
    Job& job = *job_;
    helped = jobs_;
    ++inside_;
    lock.unlock();
    job.take_pieces();
    lock.lock();
    if (--inside_ == 0) left_.notify_one();
  }
}

std::size_t useful_threads(std::size_t values, std::size_t offered) {
  const std::size_t worth_it = values / (2 * piece_values);  // each has two pieces at least
  return std::clamp<std::size_t>(std::min(worth_it, offered), 1, enough_threads);
}

}  // namespace motley::store
