// Checks that slices of gradients which a server reads in a peer's memory hold values that can be applied (base/finite.h). The peer's bytes
// are in none of this process's caches, so the store thread's pool reads them in pieces while the event loop goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/store_thread.h"
#include "transport/transport.h"
#include "wire/message.h"

namespace motley::runtime {

/// Event-loop thread only. Slices that arrive while others are being checked are checked together afterwards.
class ValueChecker {
 public:
  struct Slice {
    wire::Push push;
    std::uint64_t contribution{};  // the caller's number
    std::uint8_t bits{};           // 32 or 16
    std::span<const std::byte> payload;
    transport::BorrowedMemory borrow;  // kept until the check is over
  };
  /// From the event loop, in the order of add().
  using OnChecked = std::function<void(const Slice&, bool finite)>;

  ValueChecker(StoreThread& store_thread, OnChecked on_checked);
  void add(Slice slice);

 private:
  using Batch = std::vector<Slice>;
  static std::vector<bool> check_values(const Batch& batch, store::ThreadPool& pool);
  void check_waiting();

  StoreThread& store_thread_;
  OnChecked on_checked_;
  Batch waiting_;
  bool checking_ = false;
};

}  // namespace motley::runtime
