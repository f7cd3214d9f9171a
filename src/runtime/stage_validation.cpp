// A stage's process and what others may send it: its chief what a chief does, and a neighbour what the stage before or after it does, once
// it has shown the key that the chief gave to the two of them. Whatever does not pass closes its connection, before it reaches the machine
// or a buffer.
#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "runtime/stage_process.h"
#include "wire/frame.h"

namespace motley::runtime {

wire::Objection StageProcess::objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const {
  const bool chief = &from == chief_.get();
  if (auto why = wire::objection(chief ? wire::Sender::stages_chief : wire::Sender::neighbour, lane, message)) return why;
  if (chief) return objection_to_chief(message);
  if (const auto* peer_hello = std::get_if<wire::PeerHello>(&message)) return objection_to_peer_hello(from, *peer_hello);
  return objection_to_passed(from, std::get<wire::ActivationSlice>(message));
}

/// In its order: first what the job is, then what stage of it we are.
wire::Objection StageProcess::objection_to_chief(const wire::Message& message) const {
  const std::string_view name = wire::name_of(message);
  if (std::holds_alternative<wire::Stop>(message)) return {};
  if (std::holds_alternative<wire::JobDescription>(message) == job_received_)
    return fmt::format("its {} comes {} the job", name, job_received_ ? "after" : "before");
  if (!job_received_) return {};
  if (!registered_) return fmt::format("its {} comes before it was told who we are", name);
  const auto of_now = [&](std::uint32_t generation) -> wire::Objection {
    if (incarnation_ && generation <= incarnation_->assignment.generation) return {};
    return fmt::format("its {} is of layout {}, which was not laid", name, generation);
  };
  return std::visit(
      match{[&](const wire::AssignStage& m) { return objection_to_assignment(m); },
            [&](const wire::StageHello& m) -> wire::Objection {
              if (m.node == options_.node) return {};
              return fmt::format("it takes us for \"{}\"", m.node);
            },
            [&](const wire::Allow& m) {
              auto why = of_now(m.generation);
              if (why || m.generation < incarnation_->assignment.generation) return why;
              if (incarnation_->allowed <= m.allowed && m.allowed <= setup_->mini_batches) return why;
              why = fmt::format("it allows {} mini-batches after {}, of {}", m.allowed, incarnation_->allowed, setup_->mini_batches);
              return why;
            },
            [&](const wire::StageSlice& m) {
              auto why = of_now(m.generation);
              if (why || m.generation < incarnation_->assignment.generation) return why;
              const bool next = !incarnation_->started && incarnation_->received[static_cast<std::size_t>(m.state_kind)] == m.offset;
              if (m.stage != incarnation_->assignment.stage || !next)
                why = fmt::format("it sends values at {} of stage {} out of their order", m.offset, m.stage);
              return why;
            },
            [](const auto&) -> wire::Objection { return {}; }},
      message);
}

wire::Objection StageProcess::objection_to_assignment(const wire::AssignStage& assignment) const {
  if (incarnation_ && assignment.generation <= incarnation_->assignment.generation)
    return fmt::format("it lays out {} after {}", assignment.generation, incarnation_->assignment.generation);
  pipeline::Cut cut;
  for (const wire::Section& section : assignment.sections) cut.push_back({section.first, section.last, section.node});
  if (!pipeline::is_valid_cut(setup_->problem, cut) || cut[assignment.stage].device != setup_->node.value ||
      assignment.schedule.micro_batches > setup_->replica.samples || assignment.allowed > setup_->mini_batches)
    return "it lays out what is no pipeline of this job with us as this stage";
  if (assignment.next.empty()) return {};
  const auto address = transport::parse_address(assignment.next);
  return address ? wire::Objection{} : wire::Objection{address.error().message};
}

/// Of the layout of now; with the key that only the two stages and the chief know.
bool StageProcess::is_before(const wire::PeerHello& peer_hello) const {
  const wire::AssignStage& assignment = incarnation_->assignment;
  return assignment.stage > 0 && peer_hello.stage == assignment.stage - 1 && peer_hello.key == assignment.before_key &&
         incarnation_->before == nullptr;
}

wire::Objection StageProcess::objection_to_peer_hello(const transport::Connection& from, const wire::PeerHello& peer_hello) const {
  const auto found = neighbours_.find(&from);
  if (found == neighbours_.end()) return {};
  if (found->second.reported) return "it has said already which stage it is";
  const bool of_now = incarnation_ && peer_hello.generation == incarnation_->assignment.generation;
  if (found->second.came) {
    if (!of_now || is_before(peer_hello)) return {};  // of another layout: it is over, or is to be told us
  } else if (of_now && peer_hello.stage == incarnation_->assignment.stage + 1 && peer_hello.key == incarnation_->assignment.next_key &&
             incarnation_->after == nullptr) {
    return {};
  }
  return fmt::format("it speaks as stage {} of layout {}, which it is not", peer_hello.stage, peer_hello.generation);
}

/// Micro-batches come whole and in their order, as stages put them out; no more wait here than the stages may hold.
wire::Objection StageProcess::objection_to_passed(const transport::Connection& from, const wire::ActivationSlice& passed) const {
  const bool known = incarnation_ && (passed.back ? incarnation_->after : incarnation_->before) == &from;
  if (known && passed.generation < incarnation_->assignment.generation) return {};
  const std::string what =
      fmt::format("{} of micro-batch {} of layout {}", passed.back ? "a gradient" : "an output", passed.micro, passed.generation);
  if (!known || passed.generation != incarnation_->assignment.generation)
    return fmt::format("it passes {} and is not the stage for that", what);
  const Incarnation& incarnation = *incarnation_;
  const auto& coming = passed.back ? incarnation.gradients : incarnation.inputs;
  const std::uint64_t next = passed.back ? incarnation.next_gradient : incarnation.next_input;
  const auto found = coming.find(passed.micro);
  const std::uint64_t offset = found != coming.end() && found->second.activation ? found->second.activation->values.size() : 0;
  if (passed.micro != next || passed.offset != offset || (offset > 0 && passed.shape != found->second.activation->shape))
    return fmt::format("it passes {} at {}, expected micro-batch {} at {}", what, passed.offset, next, offset);
  const std::size_t held =
      incarnation.assignment.schedule.max_in_flight[passed.back ? incarnation.assignment.stage : incarnation.assignment.stage - 1];
  if (offset == 0 && coming.size() > held) return fmt::format("it passes {}, though {} wait", what, coming.size());
  const auto shipped = incarnation.shipped.find(passed.micro);
  if (passed.back && (shipped == incarnation.shipped.end() || shipped->second != wire::values_of(passed.shape)))
    return fmt::format("it passes {}, which is not the gradient of what was put out", what);
  return {};
}

/// With the reason, which is told once: a connection takes its time to close.
void StageProcess::expel(transport::Connection& from, const std::string& why) {
  const auto neighbour = neighbours_.find(&from);
  if (neighbour != neighbours_.end() && std::exchange(neighbour->second.sent_away, true)) return;
  const std::string sentence =
      fmt::format("sent {} at {} away: {}", &from == chief_.get() ? "the conductor" : "a neighbour", from.peer(), why);
  &from == chief_.get() ? log_(sentence) : refusals_.say(sentence);
  from.close(why);
}

/// Whoever has come must be the stage before this one soon: it comes when both are laid out.
void StageProcess::expel_idle_neighbours() {
  const Instant now = clock_.now();
  for (auto& [connection, neighbour] : neighbours_)
    if (neighbour.came && now - neighbour.since > options_.join_deadline && !(incarnation_ && incarnation_->before == connection))
      expel(*neighbour.connection, fmt::format("it is no neighbour after {:.0f} s", seconds(options_.join_deadline)));
}

/// While we prepare, the conductor hears nothing else of us.
void StageProcess::stay_known() {
  heartbeat_.expires_after(options_.join_heartbeat);
  heartbeat_.async_wait([this, alive = alive_, attempt = attempts_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || attempt != attempts_ || registered_) return;
    chief_->send(wire::Heartbeat{wire::no_worker});
    stay_known();
  });
}

}  // namespace motley::runtime
