#include "runtime/stage_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/batching.h"
#include "base/match.h"

namespace motley::runtime {

using pipeline::Part;

namespace {

ActivationExchangeOptions exchange(const StageAssignment& assignment, const StageSetup& setup, std::size_t slice_bytes,
                                   Neighbour neighbour) {
  const wire::AssignStage& message = assignment.message;
  const bool outputs = neighbour == Neighbour::before;  // that are received
  return {
      .neighbour = neighbour,
      .generation = message.generation,
      .first_micro = message.from * message.schedule.micro_batches,
      .most_waiting = outputs && assignment.is_first() ? 0 : message.schedule.max_in_flight[outputs ? message.stage - 1 : message.stage],
      .slices = setup.slices,
      .slice_bytes = slice_bytes};
}

}  // namespace

StageTraining::StageTraining(const wire::AssignStage& message, const StageSetup& setup, std::size_t slice_bytes, StageExecutor& executor,
                             PeerConnection& chief)
    : assignment_(message, setup),
      setup_(setup),
      slice_bytes_(slice_bytes),
      executor_(executor),
      chief_(chief),
      before_(exchange(assignment_, setup, slice_bytes, Neighbour::before)),
      after_(exchange(assignment_, setup, slice_bytes, Neighbour::after)),
      phase_(std::in_place_type<StagePartReceiver>, assignment_.place, assignment_.state_kinds(setup), message.from),
      allowed_(message.allowed),
      state_submitted_(message.from),
      clock_(message.training) {}

bool StageTraining::disconnect(const PeerConnection& peer) {
  const bool before = before_.peer() == &peer, after = after_.peer() == &peer;
  if (before) before_.disconnect();
  if (after) after_.disconnect();
  return before || after;
}

// Beginning ------------------------------------------------------------------------------------------------------------------------------

void StageTraining::begin_if_ready() {
  const auto* receiver = std::get_if<StagePartReceiver>(&phase_);
  const bool connected = (assignment_.is_first() || before_.peer() != nullptr) && (assignment_.is_last() || after_.peer() != nullptr);
  if (receiver == nullptr || !receiver->is_complete() || !connected) return;
  executor_.configure(config(receiver->part()));
  phase_.emplace<protocol::Stage>(machine_options());
  tell(protocol::StageStarted{});
  tell(protocol::MoreMiniBatches{allowed_});
  tell_of_arrivals();
}

StageConfig StageTraining::config(const std::shared_ptr<store::StagePart>& part) const {
  store::StageReplicaOptions replica = setup_.replica;
  replica.parameters = assignment_.place.parameters;
  replica.micro_batches = assignment_.schedule.micro_batches;
  replica.reads_samples = assignment_.is_first() || assignment_.is_last();
  replica.predicts = assignment_.schedule.predicts;
  replica.clips = assignment_.schedule.clips;
  StageConfig config;
  config.make = [make = setup_.make, cut = assignment_.cut, stage = assignment_.stage(), replica, part] {
    auto source = make(cut, stage);
    if (!source) throw std::runtime_error(source.error().message);
    return std::make_unique<store::StageReplica>(replica, std::move(*source), std::move(*part));
  };
  if (setup_.emulated) config.parts_s = assignment_.message.parts_s;
  config.kept_bytes = assignment_.message.kept_bytes;
  config.clock = clock_;
  return config;
}

protocol::StageOptions StageTraining::machine_options() const {
  const store::StageReplicaOptions& replica = setup_.replica;
  const std::uint64_t all = std::min(replica.total_samples, setup_.mini_batches * replica.samples);
  const Batching batching{all, replica.samples, assignment_.schedule.micro_batches};
  return {.schedule = assignment_.schedule,
          .stage = assignment_.stage(),
          .stages = static_cast<std::uint32_t>(assignment_.cut.size()),
          .mini_batches = assignment_.message.from,
          .first_mini = assignment_.message.from,
          .micro_batches = batching.micro_batches()};
}

/// Micro-batches that arrived before the machine was there, in order. It ignores those that it was told of.
void StageTraining::tell_of_arrivals() {
  const std::vector<std::uint64_t> inputs = before_.complete(), gradients = after_.complete();
  for (const std::uint64_t micro : inputs) tell(protocol::InputHere{micro});
  for (const std::uint64_t micro : gradients) tell(protocol::GradientHere{micro});
}

// Messages -------------------------------------------------------------------------------------------------------------------------------

wire::Objection StageTraining::objection(const wire::Allow& allow) const {
  if (allow.generation < assignment_.generation() || (allowed_ <= allow.allowed && allow.allowed <= setup_.mini_batches)) return {};
  return fmt::format("it allows {} mini-batches after {}, of {}", allow.allowed, allowed_, setup_.mini_batches);
}

wire::Objection StageTraining::objection(const wire::StageSlice& slice) const {
  if (slice.generation < assignment_.generation()) return {};
  const auto* receiver = std::get_if<StagePartReceiver>(&phase_);
  if (receiver != nullptr && slice.stage == assignment_.stage() && receiver->is_next(slice)) return {};
  return fmt::format("it sends values at {} of stage {} out of their order", slice.offset, slice.stage);
}

void StageTraining::on_message(const wire::Allow& allow) {
  if (allow.generation != assignment_.generation()) return;
  allowed_ = allow.allowed;
  submit_all_ = allow.submit_state;
  tell(protocol::MoreMiniBatches{allow.allowed});
  submit_state_if_due();
}

std::span<std::byte> StageTraining::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  if (const auto* activation = std::get_if<wire::ActivationSlice>(&head))
    return (activation->back ? after_ : before_).receive_buffer(*activation, bytes);
  const auto& slice = std::get<wire::StageSlice>(head);
  auto* receiver = std::get_if<StagePartReceiver>(&phase_);
  if (slice.generation == assignment_.generation() && receiver != nullptr) return receiver->receive_buffer(from, slice, bytes);
  return bytes % sizeof(float) == 0 ? from.discard(bytes) : std::span<std::byte>{};
}

void StageTraining::received(PeerConnection& from, const wire::Message& head) {
  if (const auto* slice = std::get_if<wire::StageSlice>(&head)) {
    if (auto* receiver = std::get_if<StagePartReceiver>(&phase_)) receiver->received(from, *slice);
    return begin_if_ready();
  }
  const auto& slice = std::get<wire::ActivationSlice>(head);
  const auto progress = (slice.back ? after_ : before_).received(from, slice);
  if (!progress) return;
  report_.note(progress->finite);
  if (!progress->complete) return;
  if (slice.back)
    tell(protocol::GradientHere{slice.micro});
  else
    tell(protocol::InputHere{slice.micro});
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void StageTraining::tell(const protocol::StageEvent& event) {
  auto* machine = std::get_if<protocol::Stage>(&phase_);
  if (machine == nullptr) return;
  protocol::StageActions actions;
  machine->step(event, actions);
  for (const auto& action : actions) carry_out(action);
}

void StageTraining::carry_out(const protocol::StageAction& action) {
  std::visit(
      match{[&](const protocol::RunPart& a) { run(a); }, [&](const protocol::ShipOutput& a) { after_.send(a.micro); },
            [&](const protocol::ShipGradient& a) { before_.send(a.micro); }, [&](const protocol::CommitMiniBatch& a) { commit(a.mini); }},
      action);
}

void StageTraining::run(const protocol::RunPart& part) {
  StageWork work;
  work.part = part;
  work.began = continues_ ? *continues_ : clock_.now();
  if (part.part == Part::forward) {
    report_.forward_began(part.micro, std::get<protocol::Stage>(phase_).committed());
    work.rate = assignment_.learning_rate(part.micro / assignment_.schedule.micro_batches, setup_);
    work.in = before_.take(part.micro);
  } else if (part.part == Part::input) {
    work.in = after_.take(part.micro);
  }
  executor_.run(std::move(work));
}

void StageTraining::done(StageWork& work) {
  const std::uint64_t micro = work.part.micro;
  report_.done(work);
  if (work.part.part == Part::forward && !assignment_.is_last()) after_.put(micro, std::move(work.out));
  if (work.part.part == Part::input && !assignment_.is_first()) before_.put(micro, std::move(work.out));
  if (setup_.emulated) continues_ = work.ended;
  tell(protocol::PartDone{work.part.part, micro});
  continues_.reset();
}

void StageTraining::commit(std::uint64_t mini) {
  executor_.commit(mini, assignment_.learning_rate(mini, setup_));
  chief_.send(report_.take(assignment_.generation(), assignment_.stage(), mini + 1));
  if ((mini + 1) % setup_.snapshot_every == 0 || mini + 1 == setup_.mini_batches) submit_state(mini + 1);
  submit_state_if_due();
}

void StageTraining::submit_state(std::uint64_t mini_batches) {
  state_submitted_ = mini_batches;
  executor_.submit_state(mini_batches);
}

void StageTraining::submit_state_if_due() {
  const auto* machine = std::get_if<protocol::Stage>(&phase_);
  if (submit_all_ && machine != nullptr && machine->committed() == allowed_ && state_submitted_ < allowed_) submit_state(allowed_);
}

void StageTraining::state_submitted(std::uint64_t mini_batches, const std::shared_ptr<const store::StagePart>& part) {
  const std::size_t count = std::max<std::size_t>(1, slice_bytes_ / sizeof(float));
  const auto send = [&](std::span<const float> values, wire::StateKind kind) {
    for (std::size_t at = 0; at < values.size(); at += count)
      chief_.send_payload({.head = wire::StageSlice{assignment_.generation(), assignment_.stage(), mini_batches, kind, at},
                           .payload = std::as_bytes(values.subspan(at, std::min(count, values.size() - at)))},
                          part);
  };
  send(part->values, wire::StateKind::values);
  send(part->first, wire::StateKind::first);
  send(part->second, wire::StateKind::second);
}

}  // namespace motley::runtime
