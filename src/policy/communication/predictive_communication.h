// Travel `predicted`: the bits and the overlap that promise the most progress per second, from what was measured.
//
// Levels: 32/32, 16/16, 8/8, 4/8 bits (push/pull). With T what a planned step computes for and c_i(L) the measured time that worker i's
//   values would travel at level L, progress per second is predicted as
//     overlap 0, one level for all:        efficiency(L) / (T + max c_i(L))
//     overlap 1, each the highest level    .92 * efficiency(lowest of them) / max(T, c_i)
//       whose travel hides under .7 T:
//   and the better one is taken when it is better by 3 %. At overlap 0 a worker with a good link takes the highest level that nobody waits
//   for. A worker whose residual is more than half of what it pushes (error feedback falls behind) goes one level up for 100 updates.
// Overlap 1, unless the user has decided, is only used in the middle: after the first hundredth of training (at least 20 updates), before
//   the last 3 %, and not for 100 updates after unrest (policy/communication/divergence_detector.h). Overlap under which the loss has
//   soared does the same again at such a rate: a rate that falls must be a quarter of that one first, and at one that stays each rest is
//   twice the last.
// Where everyone is near, values are read where they lie, in full, and what there is to hide is not their travel but the time between two
//   steps: the devices' that do a step at once (GPUs, which stand still for a twentieth of theirs) is worth hiding, whatever is predicted;
//   but not where the rate is one that had to be risen to: a model at the edge of what its rate allows does not bear late gradients.
// Guarantee: staleness at most 1. Cost: O(P) every 10 updates.
#pragma once
#include <optional>
#include <vector>

#include "policy/communication/communication_policy.h"
#include "policy/communication/divergence_detector.h"
#include "policy/worker_set.h"

namespace motley::policy {

class PredictiveCommunication : public CommunicationPolicy {
 public:
  struct Fixed {  // what the user has decided
    std::optional<Bits> bits{};
    std::optional<std::uint32_t> overlap{};
    bool overlap_free_transfers = true;  // where transfers are free too, to hide the idle time between steps
  };
  explicit PredictiveCommunication(const Fixed& fixed);
  void joined(WorkerId worker) override;
  void left(WorkerId worker) override { worker_set_.leave(worker); }
  void contributed(const Contribution& contribution) override;
  void updated(const Monitor& monitor, const CommunicationInputs& inputs) override;
  [[nodiscard]] Bits bits(WorkerId worker) const override;
  [[nodiscard]] std::uint32_t overlap() const override { return overlap_; }
  void save(StateWriter& state) const override;
  void restore(StateReader& state) override;

 private:
  using Level = std::size_t;  // into levels(), the most bits first
  struct Choice {
    std::uint32_t overlap = 0;
    double score = 0;
    std::vector<Level> levels;  // by rank
  };
  struct State {
    Level level = 0;
    Level least = 0;              // its residual forbids less precise ones than this
    std::uint64_t least_until{};  // update
  };
  [[nodiscard]] Level lowest(WorkerId worker) const;
  [[nodiscard]] Level within(const Monitor& monitor, WorkerId worker, double longest_s) const;
  [[nodiscard]] Choice sequential(const Monitor& monitor, double step_s) const;
  [[nodiscard]] Choice overlapped(const Monitor& monitor, double step_s) const;
  [[nodiscard]] bool may_overlap(const CommunicationInputs& inputs) const;
  [[nodiscard]] bool prefers_overlap(const CommunicationInputs& inputs, const Choice& without, const Choice& with) const;
  void adopt(const Choice& choice);

  Fixed fixed_;
  std::vector<Bits> levels_;
  WorkerSet worker_set_;
  std::vector<State> states_;  // by WorkerId
  std::uint32_t overlap_ = 0;
  DivergenceDetector divergence_detector_;
  std::uint64_t updates_ = 0;
  bool free_transfers_ = false;  // for every worker
  std::optional<std::uint64_t> last_decided_;
  std::uint64_t retry_at_ = 0;  // update from which on overlap is allowed again
  std::uint64_t retry_delay_;   // after the next unrest, in updates
  double failed_lr_ = 0;        // the rate at which overlap has brought unrest; 0: none has
  double rate_ = 0;             // of learning, at the last update
};

}  // namespace motley::policy
