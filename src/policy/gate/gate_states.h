// Gate `states`: a barrier that stops waiting for stragglers; how it treats them depends on how far apart the workers are. After A2S, DSSP
// and DC-ASGD.
//
// gap = newest version - oldest base version in use;  s = threshold (policy/gate/stragglers.h);  s_max = 16
//   in step     gap <= s and no stragglers      a barrier over all workers
//   lagging     stragglers, or gap > s          a barrier over the others. A straggler's contribution is applied on arrival, past the
//                                               momentum, scaled by 1/(1 + .25*max(0, tau-1)) and, when tau > 1, compensated for the
//                                               change since its base; the straggler continues at once
//   over-stale  gap > s_max                     an over-stale worker that is not expected within m/2 is cancelled and starts again on
//                                               the newest version. Else the others wait for it, at most m. A contribution with
//                                               tau > s_max counts 1/(1+tau), and only if it is aligned with the momentum
// tau: staleness of the contribution in versions;  m: median step time.
// Guarantee: no worker waits longer than 1.3 median steps for a straggler; contributions of other workers are never stale.
// Cost: late gradients of stragglers count a little less than their samples. O(log P) per contribution.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "policy/gate/gate.h"
#include "policy/gate/stragglers.h"

namespace motley::policy {

class GateStates : public Gate {
 public:
  /// Each rule can be switched off, to measure its effect.
  struct Rules {
    bool bypass_momentum = true;        // contributions of stragglers are applied past the momentum
    bool soften = true;                 // they count less the staler they are
    bool compensate = true;             // they are compensated for the change since their base
    bool look_ahead_more = true;        // stragglers are sent parameters that look further ahead
    bool hold = true;                   // the others wait for an over-stale worker
    bool test_alignment = true;         // over-stale contributions must be aligned with the momentum
    bool cancel = true;                 // over-stale steps are cancelled
    std::uint64_t over_stale_gap = 16;  // s_max
  };

  explicit GateStates(const Rules& rules) : rules_(rules) {}
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker, Duration expected) override;
  void idled(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;
  void alignment_known(Instant now, const AlignmentTest& which, double alignment, Decisions& out) override;
  void woken(Instant now, Decisions& out) override;
  [[nodiscard]] std::optional<std::uint32_t> cohort(WorkerId worker) const override;
  [[nodiscard]] std::uint32_t staleness(WorkerId worker) const override;
  [[nodiscard]] bool compensates() const override { return rules_.compensate; }
  void save(StateWriter& state) const override;
  void restore(StateReader& state) override;

 private:
  enum class Place : std::uint8_t {
    outside,
    idle,         // waits for the next round, or has no work
    in_round,     // released or computing; a round waits for it
    alone,        // released or computing; no round waits for it
    being_tested  // the servers test its contribution's alignment
  };
  struct Pending {
    Contribution contribution;
    std::uint64_t staleness{};
  };
  void arrived_late(const Contribution& contribution, std::uint64_t staleness, Decisions& out);
  void apply(std::vector<Contribution> members, const UpdateOptions& options, Decisions& out);
  void release(WorkerId worker, Why why, Decisions& out);
  void go_on_alone(WorkerId worker, Decisions& out);
  /// After every event: finds stragglers, handles over-stale workers, closes and opens rounds, reports the state.
  void settle(Instant now, std::optional<Why> reopen, Decisions& out);
  bool look(Instant now, Decisions& out);  // false: a look was not due
  void cancel_over_stale(Instant now, Decisions& out);
  [[nodiscard]] bool waits_for_over_stale(Instant now, Decisions& out);
  void close_and_open_rounds(Instant now, std::optional<Why> reopen, Decisions& out);
  void report_state(Decisions& out);
  void request_wake_up(Decisions& out) const;

  Rules rules_;
  Stragglers stragglers_;
  std::vector<Place> places_;          // by id
  std::set<WorkerId> here_;            // all workers
  std::set<WorkerId> round_;           // workers that the round still waits for
  std::vector<Contribution> arrived_;  // of the round
  std::map<std::pair<WorkerId, Step>, Pending> pending_;
  Version version_;  // counts updates since this process started
  State state_ = State::in_step;
  std::uint64_t reported_threshold_ = straggling::least_threshold;
  std::optional<Instant> look_due_;
  std::uint64_t since_look_ = 0;       // contributions
  std::optional<Instant> hold_until_;  // the round is complete, but waits for an over-stale worker
  bool held_once_ = false;             // this round has waited already
};

}  // namespace motley::policy
