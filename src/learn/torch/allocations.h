// Counts the bytes that torch allocates on this thread during the object's lifetime, by torch's interface for memory profilers.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace motley::learn {

class Allocations {
 public:
  Allocations() : count_(std::make_shared<Count>()), guard_(c10::DebugInfoKind::PROFILER_STATE, count_) {}
  /// Total of all allocations so far, freed or not.
  [[nodiscard]] std::uint64_t bytes() const { return count_->bytes; }

 private:
  // The type of the totals differs between versions of torch.
  template <class Report>
  struct TotalIn;
  template <class Base, class Number>
  struct TotalIn<void (Base::*)(void*, std::int64_t, Number, Number, c10::Device)> {
    using type = Number;
  };
  using Total = TotalIn<decltype(&c10::MemoryReportingInfoBase::reportMemoryUsage)>::type;

  struct Count final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t size, Total, Total, c10::Device) override {
      if (size > 0) bytes += static_cast<std::uint64_t>(size);  // a negative size reports a deallocation
    }
    [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
    std::uint64_t bytes = 0;
  };
  std::shared_ptr<Count> count_;
  c10::DebugInfoGuard guard_;
};

}  // namespace motley::learn
