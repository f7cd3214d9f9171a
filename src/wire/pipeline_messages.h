// Messages of pipelines: between the conductor and the stages, and between neighbours; the drivers' own.
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

/// Numbers that a server holds: the values, or the optimizer's moments.
enum class StateKind : std::uint8_t { values, first, second };
BOOST_DESCRIBE_ENUM(StateKind, values, first, second)

/// A stage's process to the conductor: this node is here, and whoever is to be its neighbour finds it there. Said back when it is taken.
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
/// The conductor to a node: from now on you are this stage, whatever you were before. Its values come as StageSlices.
struct AssignStage {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::vector<Section> sections;  // of all stages
  StageSchedule schedule;
  std::uint64_t from{};                    // mini-batches that are done
  std::uint64_t allowed{};                 // mini-batches
  bool moments{};                          // the optimizer's come too
  std::string next;                        // where the stage after it listens; empty: there is none
  std::vector<double> parts_s;             // what each part of a micro-batch takes there, as the plan has it: for emulated devices
  double kept_bytes{};                     // by a micro-batch, from its forward until its backward
  Duration training{};                     // how long training has gone on
  std::uint64_t before_key{}, next_key{};  // of the PeerHello with the stage before, and with the one after
};
/// A stage to the conductor: it has heard this AssignStage, and its part may come. (Slices and messages travel apart, and may overtake each
/// other.)
struct StageAssigned {
  std::uint32_t generation{};
};
/// A stage to the conductor, now and then: how far its device has come.
struct StageStatus {
  std::uint32_t generation{};
  std::uint64_t done{};  // pieces of work, since its process began
  bool busy{};           // with another one
};
/// So many may be begun. `submit_state`: who has committed them all hands in.
struct Allow {
  std::uint32_t generation{};
  std::uint64_t allowed{};
  bool submit_state{};
};
/// One part of one micro-batch, when it was computed.
struct PartRecord {
  std::uint8_t part{};  // 0 forward, 1 gradient of inputs, 2 of weights
  std::uint64_t micro{};
  std::uint64_t version{};  // of the parameters it used
  std::uint32_t late{};     // updates that they lacked
  Duration began{};         // of training
  Duration ended{};
};
/// A stage to the conductor: it has committed so many mini-batches, and this is what it did since it said so last.
struct Committed {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  bool finite = true;           // its losses were, and whatever it was passed
  std::uint64_t stash_bytes{};  // the most that it kept: activations, and parameters beside the newest
  std::vector<PartRecord> parts;
};
/// A stage to the one after it, first thing on a connection; said back when that one is laid out for the same generation.
struct PeerHello {
  std::uint32_t generation{};
  std::uint32_t stage{};  // of the one that says so
  std::uint64_t key{};    // of this pair of stages
};
/// A stage to the conductor: a neighbour is lost, or was never reached, though you have not said so.
struct PeerLost {
  std::uint32_t generation{};
  std::string why;
};
/// A run of a stage's numbers as of `mini_batches`, from the conductor or to it; its payload goes beside it.
struct StageSlice {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  StateKind state_kind{};
  std::uint64_t offset{};  // values
};
/// A run of what one stage puts out for the next, or of its gradient on the way back; its payload goes beside it.
struct ActivationSlice {
  std::uint32_t generation{};
  std::uint64_t micro{};
  bool back{};
  std::uint64_t offset{};           // values
  std::vector<std::int64_t> shape;  // of the whole
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
