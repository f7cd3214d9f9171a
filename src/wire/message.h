// Every message that crosses between chief, servers and workers: a closed set of plain structs, described once.
// Payloads (slices) are not here: Push and Pulled announce them, the bytes travel beside the message and are never serialised.
#pragma once
#include <boost/describe.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/lease.h"
#include "base/step_report.h"
#include "base/time.h"
#include "base/update_kind.h"
#include "cluster/device_profile.h"
#include "wire/pipeline_messages.h"

namespace motley::wire {

/// Payload that one end may have under way to another before some of it has arrived; two slices at least, whatever their size.
inline constexpr std::size_t window_bytes = std::size_t{4} << 20;

// worker -> chief ------------------------------------------------------------------------------------------------------------------

/// A node that has no place in the job's list.
inline constexpr std::uint32_t no_node_index = std::numeric_limits<std::uint32_t>::max();
inline constexpr WorkerId no_worker{std::numeric_limits<std::uint32_t>::max()};

/// Asks to become a member. Answered by Welcome (before training starts: when it does) or, when training is over, Stop.
struct Hello {
  std::string node;
  std::uint32_t attempt{};  // grows with each Hello of a connection; Welcome repeats it, so that a late answer is recognised
  std::uint32_t node_index = no_node_index;  // in the job's list of nodes; workers that start together get their ids in this order
  cluster::DeviceProfile profile{};
};
/// It begins to compute this step. For whoever watches: nothing is decided by it.
struct Began {
  WorkerId worker;
  Step step;
};
/// The step is computed and its slices are being sent. The chief acts on it when every server has sent Gathered too.
struct Contributed {
  WorkerId worker{};
  Step step{};
  Version base{};  // of the parameters it was computed on
  StepReport report{};
};
/// Said when there was nothing else to say for a while; by `no_worker` before it is a member.
struct Heartbeat {
  WorkerId worker;
};
/// Goes in good order; what it holds returns to the pool.
struct Leaving {
  WorkerId worker;
};

// chief -> worker ------------------------------------------------------------------------------------------------------------------

struct Welcome {
  WorkerId worker;
  std::uint32_t attempt{};
  std::uint64_t key{};  // shows a server that whoever attaches is this member
};
/// What to do next, after what was ordered before. The parameters to do it on come from the servers, at `version` or later.
struct Order {
  WorkerId worker;
  Step step;
  Step parameters;  // the step whose pull this is computed on: this one, or an earlier one whose parameters serve again
  Version version;
  std::uint32_t local_steps{};
  double rate{};             // learning rate of local steps
  std::uint8_t push_bits{};  // how to send the contribution
  Duration training{};       // how long training has gone on
  Duration limit{};          // stop when it was computed for so long, whether or not all samples are done; 0: there is no limit
  std::uint32_t micro = 1;   // samples between two looks at the clock, when there is a limit
  Lease lease;
  Step missing{};       // the first of this worker's own steps that is not in the parameters; this one: all are
  double correction{};  // local steps: of the worker's own way that the parameters lack, so much is given up when they come
  double mean_steps{};  // local steps: everyone's, in the update that made `version`
};
/// You are not a member (any more): forget everything and say Hello.
struct Fenced {
  WorkerId worker;
};
struct Stop {};
/// This step is no longer wanted: its samples are somebody else's now. What was computed of it counts for nothing.
struct Cancel {
  WorkerId worker;
  Step step;
};

// worker -> server -----------------------------------------------------------------------------------------------------------------

/// One slice of a contribution; its payload, whose size follows from the slice and `bits`, goes beside it on the bulk lane.
struct Push {
  WorkerId worker;
  Step step;
  SliceId slice;
  std::uint8_t bits{};
};

// server -> chief ------------------------------------------------------------------------------------------------------------------

/// Every slice of this contribution that lives here has arrived, and every value of it was looked at.
struct Gathered {
  ServerId server;
  WorkerId worker;
  Step step;
  bool finite = true;  // each is a number of a size that can be applied (base/finite.h)
};
/// Answer to AlignmentTest, for the values that live here.
struct AlignmentResult {
  ServerId server;
  WorkerId worker;
  Step step;
  double alignment{};  // inner product with the optimizer's momentum
};

// chief -> server, in order, nothing lost while both live ---------------------------------------------------------------------------

using motley::UpdateKind;

struct Part {
  WorkerId worker;
  Step step;
  double weight{};
  Step parameters{};  // the step whose pull it was computed on
};
/// Turns version-1 into version. All parts are gathered already; they are summed in this order, then forgotten.
struct Apply {
  Version version;
  UpdateKind kind{};
  double rate{};
  double momentum{};
  double share{};  // of a global batch that the parts make up
  std::vector<Part> parts;
  double compensation{};  // lambda: parts are corrected for what has changed since the values they were computed on; 0: they are not
  double next_rate{};     // of the update after this one
};
/// Is this gathered contribution one that goes the way of the momentum? Answered by AlignmentResult.
struct AlignmentTest {
  WorkerId worker;
  Step step;
};
/// Forget this contribution unapplied, whatever is here of it and whatever still comes.
struct Discard {
  WorkerId worker;
  Step step;
};
/// Send this worker the newest parameters, looking ahead: w - rho*rate*v.
struct Release {
  WorkerId worker;
  Step step;  // for which it will use them
  double rho{};
  std::uint8_t pull_bits{};    // fewer than 32: only what has changed since the last time is sent
  std::uint32_t pull_class{};  // workers of one class get the same bits
  bool keep = false;           // remember what this worker gets: what it computes on it may be compensated
  bool bf16_transfer = false;  // it computes with weights of 16 bits: what is not coded comes rounded to that
};
/// Hand this version's parameters out for evaluation, or with the optimizer's state for a checkpoint. It is the newest when this arrives.
struct Export {
  Version version;
  bool state{};  // with the optimizer's state
};
/// This worker is gone: forget what it has pushed in part, send it nothing more, take nothing more from it. What is whole is applied, or
/// discarded by name after this.
struct Forget {
  WorkerId worker;
};
/// Do you still turn what you hold? The server says the same back when everything that it was asked before is done.
struct Probe {
  ServerId server;
};

// server -> worker -----------------------------------------------------------------------------------------------------------------

/// One slice of parameters; its payload goes beside it on the bulk lane, as with Push. A slice that travels with 32 bits a value is the
/// parameters themselves; with fewer it is what to add to those of the same slice that came before, unless it is rounded.
struct Pulled {
  WorkerId worker;
  Step step;
  Version version;
  SliceId slice;
  std::uint8_t bits{};
  bool rounded{};  // the parameters themselves, in as many bits
};

// between processes: who is who and where; the drivers' own, machines never see them -------------------------------------------------

/// A newcomer to the chief: what are we working on? Said before anything else; answered by JobDescription.
struct JoinRequest {
  std::string node;  // its name: one of the job's nodes, or a stranger's
};
/// The chief to a newcomer.
struct JobDescription {
  std::string job;                         // the resolved job, as text
  std::vector<std::string> servers;        // where server k listens; the chief's own, 0, is empty: the connection this comes on
  std::vector<std::uint64_t> head_starts;  // as in SlicePlacement
};
/// A worker to a server: what you send to this member goes here.
struct Attach {
  WorkerId worker;
  std::uint64_t key{};  // of its Welcome
};
/// The chief to a server, before anything else about this member: whoever attaches as it has this key.
struct Admitted {
  WorkerId worker;
  std::uint64_t key{};
};
/// A server process to the chief, which says the same back at once: how far apart are we?
struct Echo {
  std::uint32_t number{};
};
/// A server process to the chief: I am this server, workers find me there.
struct ServerHello {
  ServerId server;
  std::string address;
  Duration round_trip{};  // between us, the shortest of several
};
/// The chief to a server process, which says the same back when it is ready for its slices: where the slices live when some servers are far
/// away (store::place()).
struct SlicePlacement {
  std::vector<std::uint64_t> head_starts;
};

/// One slice of what a server holds, from the chief (so that it may begin) or to it (Export); its payload, 32 bits a value, goes beside it.
struct StateChunk {
  ServerId server;
  Version version;
  SliceId slice;
  StateKind state_kind{};
};
/// The chief to a server: with so many slices it has all of `version`; and what else a server knows of it. May come before the slices.
struct StateEnd {
  Version version;
  std::uint64_t pieces{};
  std::uint64_t optimizer_updates{};
  double rate{};  // of the last gradient update
};

BOOST_DESCRIBE_STRUCT(JoinRequest, (), (node))
BOOST_DESCRIBE_STRUCT(JobDescription, (), (job, servers, head_starts))
BOOST_DESCRIBE_STRUCT(Attach, (), (worker, key))
BOOST_DESCRIBE_STRUCT(Admitted, (), (worker, key))
BOOST_DESCRIBE_STRUCT(Echo, (), (number))
BOOST_DESCRIBE_STRUCT(ServerHello, (), (server, address, round_trip))
BOOST_DESCRIBE_STRUCT(SlicePlacement, (), (head_starts))
BOOST_DESCRIBE_STRUCT(StateChunk, (), (server, version, slice, state_kind))
BOOST_DESCRIBE_STRUCT(StateEnd, (), (version, pieces, optimizer_updates, rate))
BOOST_DESCRIBE_STRUCT(Hello, (), (node, attempt, node_index, profile))
BOOST_DESCRIBE_STRUCT(Contributed, (), (worker, step, base, report))
BOOST_DESCRIBE_STRUCT(Began, (), (worker, step))
BOOST_DESCRIBE_STRUCT(Heartbeat, (), (worker))
BOOST_DESCRIBE_STRUCT(Leaving, (), (worker))
BOOST_DESCRIBE_STRUCT(Welcome, (), (worker, attempt, key))
BOOST_DESCRIBE_STRUCT(Order, (),
                      (worker, step, parameters, version, local_steps, rate, push_bits, training, limit, micro, lease, missing, correction,
                       mean_steps))
BOOST_DESCRIBE_STRUCT(Fenced, (), (worker))
BOOST_DESCRIBE_STRUCT(Stop, (), ())
BOOST_DESCRIBE_STRUCT(Push, (), (worker, step, slice, bits))
BOOST_DESCRIBE_STRUCT(Gathered, (), (server, worker, step, finite))
BOOST_DESCRIBE_STRUCT(Part, (), (worker, step, weight, parameters))
BOOST_DESCRIBE_STRUCT(Apply, (), (version, kind, rate, momentum, share, parts, compensation, next_rate))
BOOST_DESCRIBE_STRUCT(Discard, (), (worker, step))
BOOST_DESCRIBE_STRUCT(Release, (), (worker, step, rho, pull_bits, pull_class, keep, bf16_transfer))
BOOST_DESCRIBE_STRUCT(AlignmentTest, (), (worker, step))
BOOST_DESCRIBE_STRUCT(AlignmentResult, (), (server, worker, step, alignment))
BOOST_DESCRIBE_STRUCT(Cancel, (), (worker, step))
BOOST_DESCRIBE_STRUCT(Export, (), (version, state))
BOOST_DESCRIBE_STRUCT(Forget, (), (worker))
BOOST_DESCRIBE_STRUCT(Probe, (), (server))
BOOST_DESCRIBE_STRUCT(Pulled, (), (worker, step, version, slice, bits, rounded))

/// The closed set. A message's place in this list is its kind on the wire: append, never reorder.
using Message = std::variant<Hello, Contributed, Heartbeat, Leaving, Welcome, Order, Fenced, Stop, Push, Gathered, Apply, Discard, Release,
                             Forget, Pulled, Export, JoinRequest, JobDescription, Attach, ServerHello, StateChunk, StateEnd, Began,
                             AlignmentTest, AlignmentResult, Cancel, Echo, SlicePlacement, StageHello, AssignStage, Allow, Committed,
                             PeerHello, PeerLost, StageSlice, ActivationSlice, StageAssigned, Probe, StageStatus, Admitted>;

}  // namespace motley::wire
