// Messages of pipelines: between the pipeline chief and the stages, and between neighbouring stages. Only drivers see them.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/stage_schedule.h"
#include "base/time.h"

namespace motley {
BOOST_DESCRIBE_STRUCT(StageSchedule, (),
                      (micro_batches, max_in_flight, ahead, forwards_first, defers_weight_gradients, predicts, clips, softens))
}  // namespace motley

namespace motley::wire {

/// Values of a server's shard: the parameters, or the optimizer's moments.
enum class StateKind : std::uint8_t { values, first, second };
BOOST_DESCRIBE_ENUM(StateKind, values, first, second)

/// Stage process to pipeline chief: offers this node, and the address for its neighbours. Returned when it is accepted.
struct StageHello {
  std::string node;
  std::string address;
};
/// Blocks [first, last) of the model on one of the job's nodes.
struct Section {
  std::uint32_t first{};
  std::uint32_t last{};
  std::uint32_t node{};
};
/// Pipeline chief to node: assigns a stage, in place of any earlier one. Its parameters follow as StageSlices.
struct AssignStage {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::vector<Section> sections;  // of all stages
  StageSchedule schedule;
  std::uint64_t from{};                    // mini-batches that are done
  std::uint64_t allowed{};                 // mini-batches
  bool moments{};                          // the optimizer's moments follow, too
  std::string next;                        // address of the next stage; empty: there is none
  std::vector<double> parts_s;             // planned seconds of each part of a micro-batch, for emulated devices
  double kept_bytes{};                     // memory per micro-batch, from its forward until its backward
  Duration training{};                     // time trained so far
  std::uint64_t before_key{}, next_key{};  // keys of the PeerHello with the previous and with the next stage
};
/// Stage to pipeline chief: has received this AssignStage, so its slices may be sent. (Messages and slices use different lanes, and may
/// overtake each other.)
struct StageAssigned {
  std::uint32_t generation{};
};
/// Stage to pipeline chief, periodically: the progress of its device.
struct StageStatus {
  std::uint32_t generation{};
  std::uint64_t done{};  // tasks since its process began
  bool busy{};           // computing another task
};
/// Permits mini-batches up to a number. `submit_state`: a stage that has committed all of them sends its state.
struct Allow {
  std::uint32_t generation{};
  std::uint64_t allowed{};
  bool submit_state{};
};
/// One task of one micro-batch that was computed.
struct PartRecord {
  std::uint8_t part{};  // 0 forward, 1 gradient of inputs, 2 of weights
  std::uint64_t micro{};
  std::uint64_t version{};  // of the parameters used
  std::uint32_t late{};     // updates missing in them
  Duration began{};         // in training time
  Duration ended{};
};
/// Stage to pipeline chief: the number of committed mini-batches, and the tasks since the last report.
struct Committed {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  bool finite = true;           // all its losses and inputs were finite
  std::uint64_t stash_bytes{};  // peak memory of activations and of parameters besides the newest
  std::vector<PartRecord> parts;
};
/// Stage to the next stage, as the first message on a connection; returned when that one has the same generation.
struct PeerHello {
  std::uint32_t generation{};
  std::uint32_t stage{};  // of the sender
  std::uint64_t key{};    // of this pair of stages
};
/// Stage to pipeline chief: a neighbour is lost or cannot be reached.
struct PeerLost {
  std::uint32_t generation{};
  std::string why;
};
/// A range of a stage's values as of `mini_batches`, from or to the pipeline chief; its payload is sent with it on the bulk lane.
struct StageSlice {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  StateKind state_kind{};
  std::uint64_t offset{};  // in values
};
/// A range of an activation for the next stage, or of its gradient for the previous one; its payload is sent with it on the bulk lane.
struct ActivationSlice {
  std::uint32_t generation{};
  std::uint64_t micro{};
  bool back{};
  std::uint64_t offset{};           // in values
  std::vector<std::int64_t> shape;  // of the whole activation
};

BOOST_DESCRIBE_STRUCT(StageHello, (), (node, address))
BOOST_DESCRIBE_STRUCT(Section, (), (first, last, node))
BOOST_DESCRIBE_STRUCT(AssignStage, (),
                      (generation, stage, sections, schedule, from, allowed, moments, next, parts_s, kept_bytes, training, before_key,
                       next_key))
BOOST_DESCRIBE_STRUCT(StageAssigned, (), (generation))
BOOST_DESCRIBE_STRUCT(StageStatus, (), (generation, done, busy))
BOOST_DESCRIBE_STRUCT(Allow, (), (generation, allowed, submit_state))
BOOST_DESCRIBE_STRUCT(PartRecord, (), (part, micro, version, late, began, ended))
BOOST_DESCRIBE_STRUCT(Committed, (), (generation, stage, mini_batches, finite, stash_bytes, parts))
BOOST_DESCRIBE_STRUCT(PeerHello, (), (generation, stage, key))
BOOST_DESCRIBE_STRUCT(PeerLost, (), (generation, why))
BOOST_DESCRIBE_STRUCT(StageSlice, (), (generation, stage, mini_batches, state_kind, offset))
BOOST_DESCRIBE_STRUCT(ActivationSlice, (), (generation, micro, back, offset, shape))

}  // namespace motley::wire
