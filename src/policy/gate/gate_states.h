// Gate `states`: a barrier that lets stragglers go their own way, by how far apart the workers are. After A2S, DSSP and DC-ASGD.
//
// gap = newest version - oldest that is being computed on;  s = threshold (policy/gate/stragglers.h);  s_max = 16
//   in step     gap <= s, nobody straggles         a barrier over all
//   lagging     somebody straggles, or gap > s     a barrier over the others. Stragglers are applied on arrival, past the momentum, scaled
//   by
//                                                  1/(1 + .25*max(0, tau-1)), compensated for what has changed when tau > 1, and go on at
//                                                  once
//   over-stale  gap > s_max                        who is over-stale and not expected within m/2 is cancelled and starts again on the
//   newest
//                                                  version. Else the others are held for it, at most m. What comes with tau > s_max counts
//                                                  1/(1+tau), and only if it goes the way of the momentum
// Guarantee: nobody waits longer than 1.3 median steps for a straggler; every contribution of a non-straggler is fresh.
// Cost: stragglers' gradients are late, so they count a little less than their samples. O(log P) per contribution.
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
  /// Each rule can be switched off, to see what it is worth.
  struct Rules {
    bool bypass_momentum = true;        // stragglers stay out of the momentum
    bool soften = true;                 // and count less the later they are
    bool compensate = true;             // and are compensated for what has changed
    bool look_ahead_more = true;        // and are sent what looks one step further ahead
    bool hold = true;                   // others wait for who is over-stale
    bool test_alignment = true;         // over-stale contributions must go the way of the momentum
    bool cancel = true;                 // over-stale steps are begun again
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
    idle,         // waits for the next round, or has nothing to do
    in_round,     // released or computing; its round waits for it
    alone,        // released or computing; nobody waits for it
    being_tested  // its contribution is being judged
  };
  struct Pending {
    Contribution contribution;
    std::uint64_t staleness{};
  };
  void arrived_late(const Contribution& contribution, std::uint64_t staleness, Decisions& out);
  void apply(std::vector<Contribution> members, const UpdateOptions& options, Decisions& out);
  void release(WorkerId worker, Why why, Decisions& out);
  void go_on_alone(WorkerId worker, Decisions& out);
  /// After every event: look for stragglers, deal with the over-stale, close and open rounds, tell the state.
  void settle(Instant now, std::optional<Why> reopen, Decisions& out);
  bool look(Instant now, Decisions& out);  // true when it was time to
  void cancel_over_stale(Instant now, Decisions& out);
  [[nodiscard]] bool waits_for_over_stale(Instant now, Decisions& out);
  void close_and_open_rounds(Instant now, std::optional<Why> reopen, Decisions& out);
  void report_state(Decisions& out);
  void request_wake_up(Decisions& out) const;

  Rules rules_;
  Stragglers stragglers_;
  std::vector<Place> places_;          // by id
  std::set<WorkerId> here_;            // everyone
  std::set<WorkerId> round_;           // those it still waits for
  std::vector<Contribution> arrived_;  // of the round
  std::map<std::pair<WorkerId, Step>, Pending> pending_;
  Version version_;  // as many as were applied
  State state_ = State::in_step;
  std::uint64_t reported_threshold_ = straggling::least_threshold;
  std::optional<Instant> look_due_;
  std::uint64_t since_look_ = 0;       // contributions
  std::optional<Instant> hold_until_;  // the round is complete, but somebody over-stale is waited for
  bool held_once_ = false;             // this round has been held already
};

}  // namespace motley::policy
