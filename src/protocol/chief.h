// The chief: a state machine that owns membership, the ledger and the strategy, and tells workers and servers what to do. Events in,
// actions out; it sees no payload, clock or socket.
// A contribution is complete when its worker has sent Contributed and every server has sent Gathered. Only then is it given to the
// strategy: an update is complete on every server, and a worker that dies during a push has contributed nothing and returns its lease.
// A worker that reports non-finite numbers gets another order (see NonFiniteTracker). A worker that reports finite numbers where a server
// finds others is expelled.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/lr_schedule.h"
#include "policy/strategy.h"
#include "protocol/admission.h"
#include "protocol/alignment_tests.h"
#include "protocol/chief_events.h"
#include "protocol/chief_state.h"
#include "protocol/ledger.h"
#include "protocol/membership.h"
#include "protocol/non_finite_tracker.h"
#include "protocol/order_issuer.h"
#include "protocol/progress.h"
#include "protocol/server_watch.h"
#include "protocol/step_table.h"
#include "protocol/training_clock.h"

namespace motley::protocol {

class Chief {
 public:
  Chief(const ChiefOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule);

  /// Continues from a checkpoint; before the first step(). Refuses a state that this training cannot have been in and names the wrong
  /// number; then another state may be tried.
  Outcome resume(const ChiefState& state);

  /// Total: any event in any state. Appends to `out`.
  void step(Instant now, const ChiefEvent& event, ChiefActions& out);

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Membership& membership() const { return membership_; }

 private:
  void receive(Instant now, const Received& received, ChiefActions& out);
  void hello(Instant now, const Received& received, const wire::Hello& hello, ChiefActions& out);
  void alignment_known(Instant now, const wire::AlignmentResult& reported, ChiefActions& out);
  [[nodiscard]] policy::WorkerProfile welcome(Instant now, std::uint32_t connection, const wire::Hello& hello, ChiefActions& out);
  void start(Instant now, ChiefActions& out);
  void expel(Instant now, WorkerId worker, LeaveReason why, ChiefActions& out, const std::optional<Left::Stuck>& stuck = {});

  void tick(Instant now, ChiefActions& out);
  void expel_stuck(Instant now, ChiefActions& out);
  void watch_servers(Instant now, ChiefActions& out);
  void driver_paused(Duration time);

  void complete(Instant now, WorkerId worker, const PendingStep& step, ChiefActions& out);
  PendingStep end_step(Instant now, WorkerId worker, Step step);
  void refuse(Instant now, WorkerId worker, Step step, ChiefActions& out);
  void give_back(WorkerId worker, Step step, const Lease& lease, ChiefActions& out);

  void carry_out(Instant now, ChiefActions& out);
  void apply(Instant now, const policy::Apply& update, ChiefActions& out);
  void cancel(Instant now, const policy::Cancel& which, ChiefActions& out);
  void order_next(Instant now, policy::Release release, ChiefActions& out);
  [[nodiscard]] bool may_be_saved_next() const;
  void evaluate(ChiefActions& out);
  void checkpoint(Instant now, ChiefActions& out);
  void finish(Instant now, EndReason why, ChiefActions& out);
  void tell_servers(const wire::Message& message, ChiefActions& out) const;

  ChiefOptions options_;
  policy::Strategy strategy_;
  policy::LrSchedule schedule_;
  Admission admission_;
  Membership membership_;
  Ledger ledger_;
  StepTable steps_;
  OrderIssuer orders_;
  AlignmentTests alignment_tests_;
  NonFiniteTracker non_finite_;
  Progress progress_;
  ServerWatch watch_;
  SnapshotSchedule snapshots_;
  TrainingClock clock_;
  Version version_;
  bool finished_ = false;
  Instant finished_at_{};
  policy::Decisions decisions_;  // empty between events; kept for its capacity
  std::vector<double> weights_;  // kept for its capacity
};

}  // namespace motley::protocol
