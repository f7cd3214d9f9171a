// The vocabulary of the chief: its options, the events that drivers pass to it and the actions that it returns.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/lease.h"
#include "policy/strategy.h"
#include "protocol/chief_state.h"
#include "protocol/driver_paused.h"
#include "protocol/peers.h"

namespace motley::protocol {

struct ChiefOptions {
  std::uint64_t epoch_samples{};
  std::uint64_t total_samples{};  // training ends when all of them are counted
  std::uint32_t global_batch{};
  std::uint32_t shards = 1;          // of the data set: with several, a worker gets samples of the shard of its node index
  std::uint64_t evaluate_every{};    // samples between two evaluations
  std::optional<Duration> max_time;  // training ends then, with whatever is counted
  std::uint32_t servers = 1;
  std::uint32_t quorum = 1;                     // training starts when so many workers have said Hello
  Duration silence_deadline = from_seconds(5);  // a member that sends nothing for so long is expelled
  Duration step_limit = from_seconds(30);       // least limit of one step: see Progress
  Duration start_deadline = from_seconds(5);    // the first worker waits no longer for the quorum
  Duration empty_deadline = from_seconds(60);   // training ends when it has had no worker for so long
  std::uint32_t refusals_in_a_row = 16;         // contributions in a row that are not finite: training has diverged
  std::uint64_t checkpoint_every = 0;           // updates between two checkpoints; 0: none
  std::uint32_t refusals_of_one = 4;            // the same of one worker: it is expelled if other workers are finite
};

// Events ---------------------------------------------------------------------------------------------------------------------------

struct Received {
  Peer from;
  wire::Message message;
};
/// The connection to this worker is closed for good.
struct Lost {
  WorkerId worker;
};
/// A connection on which no worker was admitted yet is closed for good.
struct LostPending {
  std::uint32_t connection{};
};
/// Time has passed. Due at least as often as deadlines should be noticed.
struct Tick {};
/// The user stops training, to resume it later.
struct Interrupted {};
/// An exported model or its loss is not finite.
struct ModelNotFinite {};
using ChiefEvent = std::variant<Received, Lost, LostPending, Tick, Interrupted, DriverPaused, ModelNotFinite>;

// Actions: Send, and facts for the trace and the screen ----------------------------------------------------------------------------

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
  /// For step_too_long: the step that took too long.
  struct Stuck {
    Step step;
    bool computed = false;  // the worker reported it, but not every server has all of it
    Duration took{};
    Duration expected{};  // 0: the worker has never contributed
  };
  std::optional<Stuck> stuck;
};
/// This server is connected but has not answered a Probe for so long. Training cannot continue without it.
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
  double loss{};    // mean over the samples, as the worker reports it
  Duration pull{};  // transfer time of its parameters, as the worker reports it
};
/// The worker's time limit ended before this part of its lease was computed: it may be leased again.
struct Returned {
  WorkerId worker;
  Step step;
  Lease lease;
};
/// This contribution is part of `version`.
struct Counted {
  WorkerId worker;
  Step step;
  Version version;
  std::uint32_t samples{};
  std::uint64_t staleness{};
  double weight{};
};
/// This worker's next order is sent, on the parameters of `version`.
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
/// The worker stops computing this step; its lease may be given to another worker.
struct Cancelled {
  WorkerId worker;
  Step step;
  policy::Why why{};
};
/// A complete contribution that the strategy does not use; its lease may be given to another worker.
struct Discarded {
  WorkerId worker;
  Step step;
  policy::Why why{};
};
/// A fact about the strategy's own state.
struct Noted {
  policy::Note note;
};
/// Send Tick at this time.
struct WakeAt {
  Instant when{};
};
/// Evaluate `version` when every server has exported it.
struct Evaluate {
  Version version;
  std::uint64_t samples{};
};
/// Save this state with the parameters and the optimizer state that every server exports next.
struct Checkpoint {
  ChiefState state;
};
struct Finished {
  EndReason why{};
};
using ChiefAction = std::variant<Send, Joined, Left, Completed, Returned, Counted, Released, Held, Dropped, Idled, Cancelled, Discarded,
                                 Noted, WakeAt, Evaluate, Checkpoint, Finished, ServerStuck>;
using ChiefActions = std::vector<ChiefAction>;  // carry out in order

}  // namespace motley::protocol
