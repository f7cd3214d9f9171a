// Several threads on one piece of work: the owner of some numbers has them changed piece by piece by a team, itself among them, and has
// them for itself again when the call returns. Knows nothing of what the pieces are.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace motley::store {

/// Threads sleep between two pieces of work. Costs a wake-up (some ten microseconds) where there is more than one piece, and one atomic
/// operation a piece.
class ThreadPool {
 public:
  using Work = std::function<void(std::size_t piece)>;

  /// `threads` >= 1, the caller's included: a team of one has none of its own.
  explicit ThreadPool(std::size_t threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  /// work(0) ... work(pieces - 1), once each, on whichever thread is free; returns when all are done. Pieces must not write what another
  /// one reads or writes. Throws what the first piece that failed has thrown; the rest may then not have been done. One caller at a time,
  /// and not from within a piece.
  void parallel_for(std::size_t pieces, const Work& work);

  [[nodiscard]] std::size_t threads() const { return helpers_.size() + 1; }

 private:
  struct Job;
  void help();

  std::mutex mutex_;
  std::condition_variable offered_, left_;
  Job* job_ = nullptr;      // open to who comes in
  std::size_t jobs_ = 0;    // so far, so that nobody comes to the same one twice
  std::size_t inside_ = 0;  // helpers at work on the job
  bool stopping_ = false;
  std::vector<std::thread> helpers_;  // last: they see the others made
};

/// How many threads are worth having for `values` values, given how many the machine has: never more than there are pieces large enough to
/// be worth a wake-up, nor more than memory can feed.
[[nodiscard]] std::size_t useful_threads(std::size_t values, std::size_t offered);

/// As many values make one piece: 256 KiB of each array, some 50 microseconds of work, and a whole number of cache lines and codec blocks.
inline constexpr std::size_t piece_values = 1U << 16;

}  // namespace motley::store
