// A fixed pool of threads with one operation, parallel_for: the calling thread and the pool's run the pieces, and the call returns when all
// pieces are done.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "store/constants.h"

namespace motley::store {

/// Threads sleep between two calls. A call costs a wake-up (about ten microseconds) if there is more than one piece, and one atomic
/// operation per piece.
class ThreadPool {
 public:
  using Work = std::function<void(std::size_t piece)>;

  /// `threads` >= 1 includes the calling thread: a pool of one starts no thread.
  explicit ThreadPool(std::size_t threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  /// Runs work(0) ... work(pieces - 1), once each, on any of the threads; returns when all are done. A piece must not write memory that
  /// another piece reads or writes. Rethrows the exception of the first piece that failed; later pieces may then not have run. One caller
  /// at a time, and not from within a piece.
  void parallel_for(std::size_t pieces, const Work& work);

  [[nodiscard]] std::size_t threads() const { return workers_.size() + 1; }

 private:
  struct Job;
  void run_worker();

  std::mutex mutex_;
  std::condition_variable job_offered_, workers_done_;
  Job* job_ = nullptr;      // open to workers; null: there is none
  std::size_t jobs_ = 0;    // so far, so that a worker does not enter the same one twice
  std::size_t active_ = 0;  // workers inside the job
  bool stopping_ = false;
  std::vector<std::thread> workers_;  // last: the other members exist when they start
};

/// The number of threads that speed up work on `values` values, of `available` ones: at least two pieces of piece_values each, and no more
/// than the memory bandwidth can keep busy.
[[nodiscard]] std::size_t useful_threads(std::size_t values, std::size_t available);

}  // namespace motley::store
