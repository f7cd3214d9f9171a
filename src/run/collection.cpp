#include "run/collection.h"

#include <algorithm>

#include "base/check.h"
#include "run/carry.h"

namespace motley::run {

Collection::Part* Collection::next_of(ServerId server) {
  const auto next = std::find_if(wanted_.begin(), wanted_.end(), [&](const Part& part) { return !part.done.contains(server); });
  return next == wanted_.end() ? nullptr : &*next;
}

void Collection::exported(Exported what) {
  Part* part = next_of(ServerId{0});
  check(part != nullptr && part->wanted.version == what.version, "what is exported was asked for");
  Wanted& wanted = part->wanted;
  part->done.insert(ServerId{0});
  if (layout_.servers == 1) {
    wanted.values = std::move(what.values);
    wanted.moments = std::move(what.moments);
    return;
  }
  if (!wanted.values) wanted.values = make_buffer(layout_.values);
  carry(layout_, ServerId{0}, what.version, what.values->floats(), what.moments ? &*what.moments : nullptr,
        [&](const wire::Carried& head, std::span<const std::byte> payload) {
          const auto to = place(layout_, head, payload.size(), wanted.values->floats(), wanted.moments);
          std::copy(payload.begin(), payload.end(), to.begin());
        });
  if (!what.moments) return;
  wanted.moments->updates = what.moments->updates;  // the same on every server
  wanted.moments->rate = what.moments->rate;
}

std::span<std::byte> Collection::room(const wire::Carried& piece, std::size_t bytes) {
  Part* part = next_of(piece.server);
  if (part == nullptr || part->wanted.version != piece.version) return {};
  if (!part->wanted.values) part->wanted.values = make_buffer(layout_.values);
  return place(layout_, piece, bytes, part->wanted.values->floats(), part->wanted.moments);
}

void Collection::received(const wire::Carried& piece) {
  Part* part = next_of(piece.server);
  check(part != nullptr, "what arrives had room");
  const bool moments = part->wanted.save.has_value();
  const bool second = moments && optimizer_ == store::OptimizerKind::adamw;
  if (++part->pieces[piece.server] == pieces_of(layout_, piece.server, moments, second)) part->done.insert(piece.server);
}

std::optional<Wanted> Collection::take() {
  if (wanted_.empty() || wanted_.front().done.size() < layout_.servers) return std::nullopt;
  Wanted whole = std::move(wanted_.front().wanted);
  wanted_.pop_front();
  return whole;
}

}  // namespace motley::run
