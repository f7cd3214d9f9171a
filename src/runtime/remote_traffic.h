// Counts bytes between workers and the servers in other processes, computed from the chief's orders and the servers' messages.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/bits.h"
#include "runtime/state_transfer.h"
#include "store/layout.h"
#include "wire/message.h"

namespace motley::runtime {

class RemoteTraffic {
 public:
  explicit RemoteTraffic(const store::Layout& layout) : layout_(layout) {}

  void ordered(const wire::Order& order) {
    if (layout_.servers > 1) push_bits_[{order.worker, order.step}] = bits_of(order.worker, order.push_bits);
  }
  void gathered(const wire::Gathered& gathered) {
    const auto bits = push_bits_.find({gathered.worker, gathered.step});
    if (bits != push_bits_.end()) pushed_ += encoded_bytes(layout_, gathered.server, bits->second);
  }
  void released(ServerId server, const wire::Release& release) {
    if (release.bf16_transfer) bf16_workers_.insert(release.worker);
    pulled_ += encoded_bytes(layout_, server, bits_of(release.worker, release.pull_bits));
  }
  /// The step ended without being gathered.
  void over(WorkerId worker, Step step) { push_bits_.erase({worker, step}); }
  void over(WorkerId worker) {
    bf16_workers_.erase(worker);
    push_bits_.erase(push_bits_.lower_bound({worker, Step{}}), push_bits_.lower_bound({WorkerId{worker.value + 1}, Step{}}));
  }

  [[nodiscard]] std::uint64_t pushed() const { return pushed_; }
  [[nodiscard]] std::uint64_t pulled() const { return pulled_; }

 private:
  [[nodiscard]] std::uint8_t bits_of(WorkerId worker, std::uint8_t ordered) const {
    return ordered == fp32_bits && bf16_workers_.contains(worker) ? bf16_bits : ordered;
  }
  const store::Layout& layout_;
  std::set<WorkerId> bf16_workers_;                              // compute in bf16
  std::map<std::pair<WorkerId, Step>, std::uint8_t> push_bits_;  // of steps in progress
  std::uint64_t pushed_ = 0;
  std::uint64_t pulled_ = 0;
};

}  // namespace motley::runtime
