#include "runtime/model_assembly.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/state_transfer.h"

namespace motley::runtime {

ModelAssembly::Part* ModelAssembly::next_of(ServerId server) {
  const auto next = std::find_if(wanted_.begin(), wanted_.end(), [&](const Part& part) { return !part.done.contains(server); });
  return next == wanted_.end() ? nullptr : &*next;
}

void ModelAssembly::exported(Exported what) {
  Part* part = next_of(ServerId{0});
  check(part != nullptr && part->wanted.version == what.version, "an exported version was requested");
  ModelRequest& wanted = part->wanted;
  part->done.insert(ServerId{0});
  if (layout_.servers == 1) {
    wanted.values = std::move(what.values);
    wanted.moments = std::move(what.moments);
    return;
  }
  if (!wanted.values) wanted.values = make_buffer(layout_.values);
  send_state(layout_, ServerId{0}, what.version, what.values->floats(), what.moments ? &*what.moments : nullptr,
             [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
               const auto to = place(layout_, head, payload.size(), wanted.values->floats(), wanted.moments);
               std::copy(payload.begin(), payload.end(), to.begin());
             });
  if (!what.moments) return;
  wanted.moments->updates = what.moments->updates;  // the same on every server
  wanted.moments->rate = what.moments->rate;
}

std::span<std::byte> ModelAssembly::receive_buffer(const wire::StateChunk& piece, std::size_t bytes) {
  Part* part = next_of(piece.server);
  if (part == nullptr || part->wanted.version != piece.version) return {};
  if (!part->wanted.values) part->wanted.values = make_buffer(layout_.values);
  return place(layout_, piece, bytes, part->wanted.values->floats(), part->wanted.moments);
}

void ModelAssembly::received(const wire::StateChunk& piece) {
  Part* part = next_of(piece.server);
  check(part != nullptr, "an arriving chunk had a receive buffer");
  const bool moments = part->wanted.save.has_value();
  const bool second = moments && optimizer_ == OptimizerKind::adamw;
  if (++part->pieces[piece.server] == pieces_of(layout_, piece.server, moments, second)) part->done.insert(piece.server);
}

std::optional<ModelRequest> ModelAssembly::take() {
  if (wanted_.empty() || wanted_.front().done.size() < layout_.servers) return std::nullopt;
  ModelRequest whole = std::move(wanted_.front().wanted);
  wanted_.pop_front();
  return whole;
}

}  // namespace motley::runtime
