// The chief: membership, ledger and strategy behind one door. Facts in, orders out; it never sees a payload, a clock or a socket.
//
// A contribution is complete when its worker has said Contributed and every server has said Gathered; only then does the strategy hear of
// it. So whatever is applied is whole on every server, and a worker that dies in mid-push has contributed nothing: its lease returns to the
// pool.
// What servers find in it that cannot be applied is not: whoever called it finite is expelled. A worker that says itself that its numbers
// are not finite is ordered something else, and expelled only while others fare better on parameters as new: where nobody does, training
// has diverged.
//
// Until training starts, whoever says Hello is a guest and waits. When the quorum is there, or the silence deadline has passed since the
// first of them came, all guests are welcomed at once in the order of their seats: ids, leases and the order of summation do not depend on
// who connected first. After the start whoever comes is welcomed at once.
#pragma once
#include <boost/container/flat_set.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/describe.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/lease.h"
#include "base/result.h"
#include "policy/lr_schedule.h"
#include "policy/strategy.h"
#include "protocol/driver_paused.h"
#include "protocol/ledger.h"
#include "protocol/membership.h"
#include "protocol/peers.h"
#include "protocol/progress.h"
#include "protocol/server_watch.h"

namespace motley::protocol {

struct ChiefOptions {
  std::uint64_t epoch_samples{};
  std::uint64_t total_samples{};  // training ends when so many are counted
  std::uint32_t global_batch{};
  std::uint32_t shards = 1;          // several: a worker gets the samples of its seat's shard
  std::uint64_t evaluate_every{};    // samples between two evaluations
  std::optional<Duration> max_time;  // training ends then, whatever is counted
  std::uint32_t servers = 1;
  std::uint32_t quorum = 1;                     // training starts when so many have said Hello
  Duration silence_deadline = from_seconds(5);  // a silent member is taken for dead
  Duration step_limit = from_seconds(30);       // who lives and yet takes so long for a step is expelled: see Progress
  Duration start_deadline = from_seconds(5);    // those who came first wait no longer for the rest of the quorum
  Duration empty_deadline = from_seconds(60);   // nobody here for so long: give up
  std::uint32_t refusals_in_a_row = 16;         // so many contributions with non-finite values, and training has diverged
  std::uint64_t checkpoint_every = 0;           // updates between two checkpoints; 0: none
  std::uint32_t refusals_of_one = 4;            // so many of one worker in a row, and it is sent away, if others fare better
};

// What the chief hears -------------------------------------------------------------------------------------------------------------

struct Received {
  Peer from;
  wire::Message message;
};
/// The connection to this worker is gone for good.
struct Lost {
  WorkerId worker;
};
/// The connection of somebody who was not welcomed yet is gone for good.
struct LostPending {
  std::uint32_t connection{};
};
/// Time passes. Due at least as often as deadlines should be noticed.
struct Tick {};
/// The user wants to stop here and go on another time.
struct Interrupted {};
/// A model that was handed out is not finite, or its loss is not.
struct ModelNotFinite {};
using ChiefEvent = std::variant<Received, Lost, LostPending, Tick, Interrupted, DriverPaused, ModelNotFinite>;

// What the chief answers, beside Send: facts for the trace and the screen ------------------------------------------------------------

enum class LeaveReason : std::uint8_t { said_goodbye, connection_lost, silent_too_long, never_finite, step_too_long, sent_not_finite };
enum class EndReason : std::uint8_t { every_sample_counted, time_is_up, diverged, nobody_left, interrupted };
BOOST_DESCRIBE_ENUM(LeaveReason, said_goodbye, connection_lost, silent_too_long, never_finite, step_too_long, sent_not_finite)
BOOST_DESCRIBE_ENUM(EndReason, every_sample_counted, time_is_up, diverged, nobody_left, interrupted)

struct Joined {
  WorkerId worker;
  std::string node;
};
struct Left {
  WorkerId worker;
  LeaveReason why{};
  /// Of step_too_long: what it did not get on with.
  struct Stuck {
    Step step;
    bool computed = false;  // it says so, yet not every server has what it made
    Duration took{};
    Duration expected{};  // 0: it has never contributed
  };
  std::optional<Stuck> stuck;
};
/// This server lives, as far as one can see, but has not answered for so long: nothing can go on without it.
struct ServerStuck {
  ServerId server;
  Duration for_how_long{};
};
/// This contribution is complete and was given to the strategy.
struct Completed {
  WorkerId worker;
  Step step;
  Version base;
  std::uint32_t samples{};
  double loss{};    // mean over the samples, as its worker says
  Duration pull{};  // that its parameters travelled, as its worker says
};
/// This part of an order's lease is back in the pool: its worker's time was up.
struct Returned {
  WorkerId worker;
  Step step;
  Lease lease;
};
/// This contribution went into `version`.
struct Counted {
  WorkerId worker;
  Step step;
  Version version;
  std::uint32_t samples{};
  std::uint64_t staleness{};
  double weight{};
};
/// This worker's next order goes out, on the parameters of `version`.
struct Released {
  WorkerId worker;
  Step step;
  Version version;
  policy::Why why{};
  policy::Bits bits;
};
struct Held {
  WorkerId worker;
  policy::Why why{};
  std::uint64_t gap{};
};
struct Dropped {
  WorkerId worker;
  Step step;
  policy::Why why{};
};
struct Idled {
  WorkerId worker;
};
/// What this worker was computing is no longer wanted; its lease is back in the pool.
struct Cancelled {
  WorkerId worker;
  Step step;
  policy::Why why{};
};
/// Contributed, but not used; its lease is back in the pool.
struct Discarded {
  WorkerId worker;
  Step step;
  policy::Why why{};
};
/// What the strategy has to tell of itself.
struct Noted {
  policy::Note note;
};
/// Say Tick at this time.
struct WakeAt {
  Instant when{};
};
/// Evaluate `version` when every server has exported it.
struct Evaluate {
  Version version;
  std::uint64_t samples{};
};
/// Where a chief stands between two updates, as far as a restart needs it.
struct ChiefState {
  Version version;
  Ledger::Positions counted;
  std::uint64_t next_evaluation{};
  Version evaluated;     // the newest version that an evaluation was asked for
  WorkerId next_worker;  // ids go on, so that those from before the restart stay fenced
  Duration trained{};    // so far
  std::vector<double> strategy;
};
inline constexpr Duration longest_training{std::int64_t{1} << 60};  // 36 years: sums and differences of such times do not overflow
inline constexpr std::uint32_t most_joins = 1 << 20;                // tables are as long as the greatest id; of all lives of a chief

/// Save this state with what every server exports next, parameters and optimizer.
struct Checkpoint {
  ChiefState state;
};
struct Finished {
  EndReason why{};
};
using ChiefAction = std::variant<Send, Joined, Left, Completed, Returned, Counted, Released, Held, Dropped, Idled, Cancelled, Discarded,
                                 Noted, WakeAt, Evaluate, Checkpoint, Finished, ServerStuck>;
using ChiefActions = std::vector<ChiefAction>;  // carry out in order

class Chief {
 public:
  Chief(const ChiefOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule);

  /// Goes on from a checkpoint, before the first step. Refuses a state that this training cannot have been in, and says which number is
  /// wrong; then it may be given another one.
  Outcome resume(const ChiefState& state);

  /// Total: any event in any state. Appends to `out`.
  void step(Instant now, const ChiefEvent& event, ChiefActions& out);

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] Version version() const { return version_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Membership& membership() const { return membership_; }

 private:
  /// An order whose contribution is not complete yet.
  struct PendingStep {
    Step step;
    Step parameters;  // the step whose pull it is computed on
    Version version;  // of that
    Lease lease;
    std::uint32_t local_steps{};
    policy::Bits bits;
    bool time_limited = false;  // by time: it may do less than its lease
    bool spare = false;         // it has more than its share, should there be time
    Instant ordered_at{};
    std::optional<wire::Contributed> reported{};  // once its worker has computed it
    Instant reported_at{};
    Instant previous_reported_at{};                   // that it was done with the step before
    boost::container::flat_set<ServerId> gathered{};  // servers that have it whole
    bool applicable = true;                           // as far as they say
  };
  struct WorkerState {
    std::uint32_t shard = 0;
    Step next;
    std::uint32_t refusals = 0;      // in a row
    Version refused_at{};            // the parameters of the first of them
    std::optional<Version> good_at;  // the parameters of the last contribution that was none of them
    bool bf16_transfer = false;      // see wire::Hello
    /// The last parameters released to it.
    struct Pull {
      Step step;
      Version version;
      double rho{};
    };
    std::optional<Pull> pull;
    Instant last_reported_at{};   // that it was done with a step
    Instant last_completed_at{};  // when a contribution of it was complete
    boost::container::small_vector<PendingStep, 1> pending_steps;
  };

  void receive(Instant now, const Received& received, ChiefActions& out);
  void hello(Instant now, const Received& received, const wire::Hello& hello, ChiefActions& out);
  void contributed(Instant now, const wire::Contributed& reported, ChiefActions& out);
  void gathered(Instant now, const wire::Gathered& reported, ChiefActions& out);
  void alignment_known(Instant now, const wire::AlignmentResult& reported, ChiefActions& out);
  [[nodiscard]] policy::WorkerProfile welcome(Instant now, std::uint32_t connection, const wire::Hello& hello, ChiefActions& out);
  void admit(Instant now, std::span<const policy::WorkerProfile> profiles, ChiefActions& out);
  void forget_pending(Instant now, std::uint32_t connection);
  void expel(Instant now, WorkerId worker, LeaveReason why, ChiefActions& out, const std::optional<Left::Stuck>& stuck = {});
  void tick(Instant now, ChiefActions& out);
  void driver_paused(Duration time);
  void expel_stuck(Instant now, ChiefActions& out);
  [[nodiscard]] Duration longest_wait(Instant now) const;
  void watch_servers(Instant now, ChiefActions& out);

  [[nodiscard]] PendingStep* find(WorkerId worker, Step step);
  void complete_if_whole(Instant now, WorkerId worker, const PendingStep& order, ChiefActions& out);
  [[nodiscard]] static Duration credible(Instant now, const WorkerState& worker_state, const PendingStep& order);
  void close(Instant now, WorkerId worker, const PendingStep& order);
  void refuse(Instant now, WorkerId worker, const PendingStep& order, ChiefActions& out);
  [[nodiscard]] bool others_fare_better(const WorkerState& worker_state) const;
  [[nodiscard]] bool others_will_tell(const WorkerState& worker_state) const;
  void start(Instant now, ChiefActions& out);
  void carry_out(Instant now, ChiefActions& out);
  void apply(Instant now, const policy::Apply& update, ChiefActions& out);
  void judge(Instant now, const policy::AlignmentTest& which, ChiefActions& out);
  void drop(const policy::Drop& which, ChiefActions& out);
  void cancel(Instant now, const policy::Cancel& which, ChiefActions& out);
  void order_next(Instant now, policy::Release release, ChiefActions& out);
  [[nodiscard]] bool serves_again(WorkerId worker, const WorkerState& worker_state) const;
  [[nodiscard]] Step first_missing(WorkerId worker, Step next) const;
  [[nodiscard]] bool saves_next() const;
  void evaluate(ChiefActions& out);
  void checkpoint(Instant now, ChiefActions& out);
  [[nodiscard]] Outcome fits(const ChiefState& state) const;
  void finish(Instant now, EndReason why, ChiefActions& out);
  [[nodiscard]] Duration trained(Instant now) const;
  void tell_servers(const wire::Message& message, ChiefActions& out) const;

  ChiefOptions options_;
  policy::Strategy strategy_;
  policy::LrSchedule schedule_;
  Membership membership_;
  Ledger ledger_;
  Progress progress_;
  ServerWatch watch_;
  std::map<WorkerId, WorkerState> worker_states_;
  using ContributionKey = std::pair<WorkerId, Step>;
  struct Complete {
    Lease lease;
    Step parameters;
  };
  std::map<ContributionKey, Complete> complete_;  // with the strategy, not yet applied; outlives its worker
  struct PendingAlignment {
    Instant asked{};
    double alignment = 0;
    boost::container::flat_set<ServerId> reported;
  };
  std::map<ContributionKey, PendingAlignment> alignment_tests_;  // asked for
  std::map<std::uint32_t, wire::Hello> pending_workers_;         // by connection; empty once training has started
  std::map<std::uint32_t, WorkerId> by_connection_;              // a second Hello on one connection replaces the first
  bool started_ = false;
  bool finished_ = false;
  Instant finished_at_{};
  Version version_;
  std::uint64_t next_evaluation_;
  Version evaluated_;
  std::optional<Version> saved_;  // the newest version that a checkpoint was asked for
  Instant started_at_{};          // of the first order
  Duration trained_before_{};     // by the runs that this one goes on from
  std::uint32_t refusals_ = 0;
  std::optional<Instant> first_pending_;  // of those waiting
  std::optional<Instant> empty_since_;
  policy::Decisions decisions_;  // scratch, empty between events
  std::vector<double> weights_;  // scratch
};

}  // namespace motley::protocol
