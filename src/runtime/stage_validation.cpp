// The messages that peers of a stage process may send: the chief its own, in order; a neighbour those of the stage before or after, once it
// has shown the key that the chief gave to the two stages. Any other closes its connection before it reaches the machine or a buffer.
#include <fmt/format.h>

#include "base/match.h"
#include "runtime/stage_process.h"
#include "wire/frame.h"

namespace motley::runtime {

wire::Objection StageProcess::objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const {
  const bool chief = session_.is_chief(from);
  if (auto why = wire::objection(chief ? wire::Sender::stages_chief : wire::Sender::neighbour, lane, message)) return why;
  if (chief) return objection_to_chief(message);
  if (const auto* hello = std::get_if<wire::PeerHello>(&message)) return objection_to_hello(from, *hello);
  if (!training_) return "it sends an activation to a process without a stage";
  return training_->objection(from, std::get<wire::ActivationSlice>(message));
}

wire::Objection StageProcess::objection_to_chief(const wire::Message& message) const {
  if (std::holds_alternative<wire::Stop>(message)) return {};
  if (auto why = session_.objection_to_order(message)) return why;
  if (!session_.has_job()) return {};
  if (!introduced_) return fmt::format("its {} comes before our StageHello", wire::name_of(message));
  return std::visit(match{[&](const wire::AssignStage& m) -> wire::Objection {
                            if (training_ && m.generation <= training_->assignment().generation())
                              return fmt::format("its assignment {} comes after {}", m.generation, training_->assignment().generation());
                            return objection_to_assignment(m, *setup_);
                          },
                          [&](const wire::StageHello& m) -> wire::Objection {
                            if (m.node == options_.node) return {};
                            return fmt::format("it calls this node \"{}\"", m.node);
                          },
                          [&](const wire::Allow& m) {
                            auto why = objection_to_generation(message, m.generation);
                            return why ? why : training_->objection(m);
                          },
                          [&](const wire::StageSlice& m) {
                            auto why = objection_to_generation(message, m.generation);
                            return why ? why : training_->objection(m);
                          },
                          [](const auto&) -> wire::Objection { return {}; }},
                    message);
}

wire::Objection StageProcess::objection_to_generation(const wire::Message& message, std::uint32_t generation) const {
  if (training_ && generation <= training_->assignment().generation()) return {};
  return fmt::format("its {} is of assignment {}, which it has not sent", wire::name_of(message), generation);
}

bool StageProcess::is_of_assignment(const wire::PeerHello& hello) const {
  return training_ && hello.generation == training_->assignment().generation();
}

/// Of the present assignment, with the key that only the two stages and the chief know.
bool StageProcess::is_before(const wire::PeerHello& hello) const {
  const wire::AssignStage& message = training_->assignment().message;
  return message.stage > 0 && hello.stage == message.stage - 1 && hello.key == message.before_key && training_->before().peer() == nullptr;
}

/// An accepted connection may be of another assignment: of one that is over, or one that the chief has not sent yet.
wire::Objection StageProcess::objection_to_hello(const PeerConnection& from, const wire::PeerHello& hello) const {
  const NeighbourConnections::Connection* connection = neighbours_.find(from);
  if (connection == nullptr) return "it is no neighbour";
  if (connection->hello) return "it has said already which stage it is";
  if (connection->accepted && (!is_of_assignment(hello) || is_before(hello))) return {};
  if (!connection->accepted && is_of_assignment(hello)) {
    const wire::AssignStage& message = training_->assignment().message;
    if (hello.stage == message.stage + 1 && hello.key == message.next_key && training_->after().peer() == nullptr) return {};
  }
  return fmt::format("it speaks as stage {} of assignment {}, which it is not", hello.stage, hello.generation);
}

void StageProcess::expel(PeerConnection& peer, const std::string& why) {
  if (session_.is_chief(peer))
    expulsions_.expel(peer, Expulsions::Peer::identified, "the chief", why);
  else
    neighbours_.expel(peer, why);
}

}  // namespace motley::runtime
