// Communication `predicted`: the bits and the overlap with the highest predicted progress per second, from measurements.
//
// Levels: 32/32, 16/16, 8/8, 4/8 bits (push/pull). With T the compute time of a planned step and c_i(L) the measured transfer time of
//   worker i at level L, progress per second is predicted as
//     overlap 0, one level for all workers:      efficiency(L) / (T + max c_i(L))
//     overlap 1, for each the highest level      .92 * efficiency(lowest of them) / max(T, c_i)
//       with transfers of at most .7 T:
//   and the better one is used when it is better by 3 %. At overlap 0 a worker with a fast link uses the highest level that delays no
//   other worker. A worker whose residual is more than half of its contribution (error feedback falls behind) gets one level more bits for
//   100 updates.
// Overlap 1, unless the user has set the overlap, is used only after the first hundredth of training (at least 20 updates), before the last
//   3 %, and not for 100 updates after a divergence (policy/communication/divergence_detector.h). After loss spikes under overlap it is
//   tried again when the learning rate is a quarter of that rate; at a constant rate the delay doubles each time.
// If transfers are free for all workers, values are sent in full, and overlap hides only the idle time between two steps: where every
//   device has some (GPUs: a twentieth of a step) overlap is used whatever is predicted, unless `overlap_free_transfers` is off.
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
  struct Fixed {  // set by the user or the job; empty: decided by prediction
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
    Level least = 0;              // its residual forbids levels with fewer bits
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
  std::uint64_t retry_at_ = 0;  // update from which overlap is allowed again
  std::uint64_t retry_delay_;   // after the next divergence, in updates
  double failed_lr_ = 0;        // the learning rate at which overlap diverged; 0: it has not
  double rate_ = 0;             // learning rate of the last update
};

}  // namespace motley::policy
