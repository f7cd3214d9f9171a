// Travel: how contributions and parameters travel. How many bits each value takes each way, per worker, and how many steps a worker may be
// ahead of what has come back (the overlap of computing and travelling).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/decisions.h"
#include "policy/monitor.h"
#include "policy/saved_state.h"

namespace motley::policy {

/// Where training stands, for mechanisms that look at it after an update.
struct CommunicationInputs {
  double progress = 0;          // 0 at the beginning, 1 at the end
  double step_s = 0;            // that the plan's step computes for; 0: there is no such plan yet
  std::uint64_t updates = 0;    // so far
  double rate = 0;              // of learning, of the last one
  bool free_transfers = false;  // for every worker: cluster::DeviceProfile
  double idle_share = 0;        // the least of all workers: part of a step for which a device idles between two steps
};

class CommunicationPolicy {
 public:
  virtual ~CommunicationPolicy() = default;
  virtual void joined(WorkerId worker) = 0;
  virtual void left(WorkerId worker) = 0;
  virtual void contributed(const Contribution& contribution) = 0;
  /// An update was made: time to think again.
  virtual void updated(const Monitor& monitor, const CommunicationInputs& inputs) = 0;
  [[nodiscard]] virtual Bits bits(WorkerId worker) const = 0;
  [[nodiscard]] virtual std::uint32_t overlap() const = 0;
  /// What a checkpoint must keep of it, under the same names whatever its state; restore() reads them.
  virtual void save(StateWriter& state) const = 0;
  virtual void restore(StateReader& state) = 0;
};

/// `fixed`: always the same.
class FixedCommunication : public CommunicationPolicy {
 public:
  explicit FixedCommunication(Bits bits = {}, std::uint32_t overlap = 0) : bits_(bits), overlap_(overlap) {}
  void joined(WorkerId) override {}
  void left(WorkerId) override {}
  void contributed(const Contribution&) override {}
  void updated(const Monitor&, const CommunicationInputs&) override {}
  [[nodiscard]] Bits bits(WorkerId) const override { return bits_; }
  [[nodiscard]] std::uint32_t overlap() const override { return overlap_; }
  void save(StateWriter&) const override {}
  void restore(StateReader&) override {}

 private:
  Bits bits_;
  std::uint32_t overlap_;
};

}  // namespace motley::policy
