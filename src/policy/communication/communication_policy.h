// Interface of communication policies: the bits per value of contributions and parameters, per worker, and the overlap, which is the number
// of steps that a worker may be ahead of the newest parameters, so that transfers hide under computation.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/decisions.h"
#include "policy/monitor.h"
#include "policy/saved_state.h"

namespace motley::policy {

/// The state of training after an update.
struct CommunicationInputs {
  double progress = 0;          // 0 at the beginning, 1 at the end
  double step_s = 0;            // compute time of a planned step; 0: there is no plan yet
  std::uint64_t updates = 0;    // so far
  double rate = 0;              // learning rate of the last update
  bool free_transfers = false;  // for every worker: cluster::DeviceProfile
  double idle_share = 0;        // the least of all workers: part of a step for which a device idles between two steps
};

class CommunicationPolicy {
 public:
  virtual ~CommunicationPolicy() = default;
  virtual void joined(WorkerId worker) = 0;
  virtual void left(WorkerId worker) = 0;
  virtual void contributed(const Contribution& contribution) = 0;
  /// An update was made: the policy may decide anew.
  virtual void updated(const Monitor& monitor, const CommunicationInputs& inputs) = 0;
  [[nodiscard]] virtual Bits bits(WorkerId worker) const = 0;
  [[nodiscard]] virtual std::uint32_t overlap() const = 0;
  /// Writes the state that a checkpoint must keep, always the same names; restore() reads them.
  virtual void save(StateWriter& state) const = 0;
  virtual void restore(StateReader& state) = 0;
};

/// `fixed`: constant bits and overlap.
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
