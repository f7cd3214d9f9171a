// Borrows that were dropped, on any thread, until their lane has reported them to the owner of the memory.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace motley::transport {

class ReturnedBorrows {
 public:
  /// `wake` is called on the executor when there is something to collect().
  void open(boost::asio::any_io_executor executor, std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    executor_ = std::move(executor);
    wake_ = std::move(wake);
  }
  /// Later drops are ignored: the lane has ended, and its executor may be gone.
  void close() {
    const std::lock_guard lock(mutex_);
    executor_ = {};
    wake_ = nullptr;
    dropped_.clear();
  }
  void drop(std::uint32_t borrow) {
    const std::lock_guard lock(mutex_);
    if (!wake_) return;
    dropped_.push_back(borrow);
    if (dropped_.size() == 1) boost::asio::post(executor_, wake_);
  }
  std::vector<std::uint32_t> collect() {
    const std::lock_guard lock(mutex_);
    return std::exchange(dropped_, {});
  }

 private:
  std::mutex mutex_;
  boost::asio::any_io_executor executor_;
  std::function<void()> wake_;  // empty: closed
  std::vector<std::uint32_t> dropped_;
};

}  // namespace motley::transport
