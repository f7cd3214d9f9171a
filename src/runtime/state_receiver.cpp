#include "runtime/state_receiver.h"

#include <fmt/format.h>

#include "runtime/state_transfer.h"

namespace motley::runtime {

StateReceiver::StateReceiver(const store::Layout& layout, ServerId server)
    : layout_(layout), server_(server), state_(std::make_shared<InitialState>()) {
  state_->values.resize(layout.values);
}

wire::Objection StateReceiver::objection(const wire::StateChunk& chunk) const {
  if (chunk.server != server_) return fmt::format("it sends a slice of server {}", chunk.server.value);
  if (chunks_.contains({chunk.slice, chunk.state_kind})) return fmt::format("it sends slice {} twice", chunk.slice.value);
  return {};
}

wire::Objection StateReceiver::objection(const wire::StateEnd&) const {
  if (!end_) return {};
  return "it has sent all slices twice";
}

std::span<std::byte> StateReceiver::receive_buffer(PeerConnection& from, const wire::StateChunk& chunk, std::size_t bytes) {
  return from.receive_into(place(layout_, chunk, bytes, state_->values, state_->moments), state_);
}

void StateReceiver::received(PeerConnection& from, const wire::StateChunk& chunk) {
  from.take_received();
  chunks_.emplace(chunk.slice, chunk.state_kind);
}

Result<std::shared_ptr<const InitialState>> StateReceiver::take() {
  const bool first = state_->moments.has_value(), second = first && !state_->moments->second.empty();
  if (chunks_.size() != pieces_of(layout_, server_, first, second))
    return peer_broken("it has sent other slices than those of this server");
  state_->version = end_->version;
  if (first) {
    state_->moments->updates = end_->optimizer_updates;
    state_->moments->rate = end_->rate;
  }
  return std::shared_ptr<const InitialState>(std::move(state_));
}

}  // namespace motley::runtime
