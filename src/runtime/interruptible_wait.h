// Lets the computing thread wait for a time, and another thread end the wait early.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace motley::runtime {

class InterruptibleWait {
 public:
  /// Waits until `when`, or until `ended()` holds. Returns whether it holds.
  template <class Ended>
  bool until(std::chrono::steady_clock::time_point when, Ended ended) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, when, ended);
  }
  /// Runs `change`, which makes ended() hold, and wakes the waiting thread.
  template <class Change>
  void interrupt(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace motley::runtime
