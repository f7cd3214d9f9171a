// Every message between chief, servers and workers: a closed set of plain structs, described once for encoding.
// Payloads (slices) are not part of them: Push and Pulled announce a payload, which is sent after the message without being serialised.
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

/// Payload bytes that one end may have in flight to another; at least two slices of any size.
inline constexpr std::size_t window_bytes = std::size_t{4} << 20;

// worker -> chief ------------------------------------------------------------------------------------------------------------------

/// A node that is not in the job's list.
inline constexpr std::uint32_t no_node_index = std::numeric_limits<std::uint32_t>::max();
inline constexpr WorkerId no_worker{std::numeric_limits<std::uint32_t>::max()};

/// Asks for membership. Answered by Welcome (once training starts) or, when training has ended, by Stop.
struct Hello {
  std::string node;
  std::uint32_t attempt{};  // grows with each Hello of a connection; Welcome repeats it, so that a late answer is recognised
  std::uint32_t node_index = no_node_index;  // in the job's list of nodes; workers that start together get their ids in this order
  cluster::DeviceProfile profile{};
};
/// The worker begins to compute this step. For displays only: no decision depends on it.
struct Began {
  WorkerId worker;
  Step step;
};
/// The step is computed and its slices are being sent. The chief acts when every server has Gathered them too.
struct Contributed {
  WorkerId worker{};
  Step step{};
  Version base{};  // of the parameters it was computed on
  StepReport report{};
};
/// Sent when no other message was sent for a while; by `no_worker` before membership.
struct Heartbeat {
  WorkerId worker;
};
/// The worker leaves; its leases return to the pool.
struct Leaving {
  WorkerId worker;
};

// chief -> worker ------------------------------------------------------------------------------------------------------------------

struct Welcome {
  WorkerId worker;
  std::uint32_t attempt{};
  std::uint64_t key{};  // proves to servers that an Attach comes from this member
};
/// The next step, after those ordered before. The servers send its parameters, of `version` or later.
struct Order {
  WorkerId worker;
  Step step;
  Step parameters;  // the step whose pull this is computed on: this one, or an earlier one whose parameters are reused
  Version version;
  std::uint32_t local_steps{};
  double rate{};             // learning rate of local steps
  std::uint8_t push_bits{};  // bits per value of the contribution
  Duration training{};       // time trained so far
  Duration limit{};          // compute time after which the step ends with the samples done; 0: no limit
  std::uint32_t micro = 1;   // samples between two checks of the clock, with a limit
  Lease lease;
  Step missing{};       // the first of this worker's steps that the parameters do not include; equal to `step`: all are
  double correction{};  // local steps: share of the local update missing in the parameters that is discarded when they arrive
  double mean_steps{};  // local steps: mean over the workers, in the update that made `version`
};
/// The receiver is not, or no longer, a member: it discards its state and sends Hello.
struct Fenced {
  WorkerId worker;
};
struct Stop {};
/// Cancels a step: its samples return to the pool, and its results are discarded.
struct Cancel {
  WorkerId worker;
  Step step;
};

// worker -> server -----------------------------------------------------------------------------------------------------------------

/// One slice of a contribution; its payload, whose size follows from the slice and `bits`, follows on the bulk lane.
struct Push {
  WorkerId worker;
  Step step;
  SliceId slice;
  std::uint8_t bits{};
};

// server -> chief ------------------------------------------------------------------------------------------------------------------

/// Every slice of this contribution that belongs to this server has arrived, and every value was checked.
struct Gathered {
  ServerId server;
  WorkerId worker;
  Step step;
  bool finite = true;  // all values are within the limit (base/finite.h)
};
/// Answer to AlignmentTest, for the values of this server.
struct AlignmentResult {
  ServerId server;
  WorkerId worker;
  Step step;
  double alignment{};  // inner product with the optimizer's momentum
};

// chief -> server, in order and without loss while both are connected ---------------------------------------------------------------

using motley::UpdateKind;

struct Part {
  WorkerId worker;
  Step step;
  double weight{};
  Step parameters{};  // the step whose pull it was computed on
};
/// Makes `version` from the version before. All parts have been gathered; they are summed in this order and then released.
struct Apply {
  Version version;
  UpdateKind kind{};
  double rate{};
  double momentum{};
  double share{};  // of the parts in a global batch
  std::vector<Part> parts;
  double compensation{};  // lambda of delay compensation: corrects parts for the change since their parameters; 0: no compensation
  double next_rate{};     // of the update after this one
};
/// Asks whether this gathered contribution is aligned with the momentum. Answered by AlignmentResult.
struct AlignmentTest {
  WorkerId worker;
  Step step;
};
/// Discards this contribution, including slices that arrive later.
struct Discard {
  WorkerId worker;
  Step step;
};
/// Sends this worker the newest parameters with look-ahead: w - rho*rate*v.
struct Release {
  WorkerId worker;
  Step step;  // that will be computed on them
  double rho{};
  std::uint8_t pull_bits{};    // fewer than 32: the encoded difference to the last pull is sent
  std::uint32_t pull_class{};  // workers of one class receive identical differences
  bool keep = false;           // keep a copy of these parameters for delay compensation
  bool bf16_transfer = false;  // the worker computes in bf16: values that are not encoded are sent as bf16
};
/// Sends this version's parameters to the chief for evaluation, or with the optimizer's state for a checkpoint. It is the newest version
/// when this arrives.
struct Export {
  Version version;
  bool state{};  // with the optimizer's state
};
/// The worker has left: drops its incomplete contributions and ends the exchange with it. Complete contributions are applied, or discarded
/// by a Discard after this.
struct Forget {
  WorkerId worker;
};
/// Tests whether a server makes progress. It returns the message when all earlier requests are done.
struct Probe {
  ServerId server;
};

// server -> worker -----------------------------------------------------------------------------------------------------------------

/// One slice of parameters; its payload follows on the bulk lane, as with Push. With 32 bits per value it holds the parameters; with fewer
/// bits the difference to the previous parameters of the slice, unless it is rounded.
struct Pulled {
  WorkerId worker;
  Step step;
  Version version;
  SliceId slice;
  std::uint8_t bits{};
  bool rounded{};  // it holds the parameters, rounded to `bits`
};

// between processes: identities and addresses, used by drivers only ------------------------------------------------------------------

/// New process to chief, as its first message. Answered by JobDescription.
struct JoinRequest {
  std::string node;  // its name: a node of the job, or a new name
};
/// Chief to new process.
struct JobDescription {
  std::string job;                         // the resolved job as text
  std::vector<std::string> servers;        // address of server k; empty for server 0, the chief: it uses this connection
  std::vector<std::uint64_t> head_starts;  // as in SlicePlacement
};
/// Worker to server: use this connection for this member.
struct Attach {
  WorkerId worker;
  std::uint64_t key{};  // of its Welcome
};
/// Chief to server, before other messages about this member: the key of its Attach.
struct Admitted {
  WorkerId worker;
  std::uint64_t key{};
};
/// Server process to chief, which returns it at once: measures the round trip.
struct Echo {
  std::uint32_t number{};
};
/// Server process to chief: its number, and its address for workers.
struct ServerHello {
  ServerId server;
  std::string address;
  Duration round_trip{};  // to the chief, the shortest of several
};
/// Chief to server process, which returns it when it is ready for its slices: placement of slices when servers have different distances
/// (store::place()).
struct SlicePlacement {
  std::vector<std::uint64_t> head_starts;
};

/// One slice of a server's state, from the chief (initial state) or to it (Export); its payload, 32 bits per value, follows on the bulk
/// lane.
struct StateChunk {
  ServerId server;
  Version version;
  SliceId slice;
  StateKind state_kind{};
};
/// Chief to server: the number of slices of `version`, and further state of it. May arrive before the slices.
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

/// The closed set of messages. A message's index in this list is its kind in a frame: append, never reorder.
using Message = std::variant<Hello, Contributed, Heartbeat, Leaving, Welcome, Order, Fenced, Stop, Push, Gathered, Apply, Discard, Release,
                             Forget, Pulled, Export, JoinRequest, JobDescription, Attach, ServerHello, StateChunk, StateEnd, Began,
                             AlignmentTest, AlignmentResult, Cancel, Echo, SlicePlacement, StageHello, AssignStage, Allow, Committed,
                             PeerHello, PeerLost, StageSlice, ActivationSlice, StageAssigned, Probe, StageStatus, Admitted>;

}  // namespace motley::wire
