#include "runtime/parameter_receiver.h"

#include <fmt/format.h>

#include <iterator>

#include "base/bits.h"
#include "codec/codec.h"
#include "store/pull_shadow.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_steps = 32;  // received in part or whole; three are in use, cancelled steps leave some

/// The memory of one payload.
struct Slot {
  std::shared_ptr<IncomingParameters> incoming;
  std::vector<std::byte> encoded;  // when it is not received into `incoming` itself
};

constexpr const char* no_base = "there is nothing that it could be a change of";

}  // namespace

wire::Objection ParameterReceiver::objection(ServerId from, const wire::Pulled& pulled) const {
  if (pulled.slice.value >= layout_.slices.size()) return fmt::format("there is no slice {}", pulled.slice.value);
  const store::Slice& slice = layout_[pulled.slice];
  if (slice.server != from) return fmt::format("slice {} is server {}'s, which it is not", pulled.slice.value, slice.server.value);
  if (!codec::make(slice.bits(pulled.bits)).ok()) return fmt::format("there is no codec of {} bits", pulled.bits);
  if (pulled.worker != member_) return {};  // sent to an earlier membership of this process: discarded
  const auto incoming = incoming_.find({pulled.worker, pulled.step});
  if (incoming == incoming_.end() && incoming_.size() >= most_steps)
    return fmt::format("parameters of more than {} steps come", most_steps);
  if (incoming != incoming_.end() && incoming->second->has(pulled.slice))
    return fmt::format("slice {} of step {} comes twice", pulled.slice.value, pulled.step.value);
  return {};
}

bool ParameterReceiver::is_expected_bf16(const wire::Pulled& pulled) const {
  return pulled.rounded && options_.bf16_transfer && bits_of(pulled) == bf16_bits;
}

std::span<std::byte> ParameterReceiver::receive_buffer(PeerConnection& from, const wire::Pulled& pulled, std::size_t bytes) {
  const store::Slice& slice = layout_[pulled.slice];
  const bool fp32 = bits_of(pulled) == fp32_bits;
  if (bytes != codec::encoded_bytes(bits_of(pulled), slice.count)) return {};
  if (pulled.rounded && !fp32 && !is_expected_bf16(pulled)) return {};
  if (pulled.worker != member_) return from.discard(bytes);
  auto& incoming = incoming_[{pulled.worker, pulled.step}];
  if (!incoming) incoming = std::make_shared<IncomingParameters>(layout_, make_buffer(layout_.values));
  if (incoming->buffer().borrowed()) return {};  // a model is read in place as a whole
  auto slot = std::make_shared<Slot>(Slot{incoming, {}});
  std::span<std::byte> place;
  if (fp32 || options_.keeps_values) {
    place = incoming->buffer().bytes(slice.offset, slice.count).first(bytes);
  } else {
    slot->encoded.resize(bytes);
    place = slot->encoded;
  }
  return from.receive_into(place, std::move(slot));
}

Result<std::shared_ptr<IncomingParameters>> ParameterReceiver::received(PeerConnection& from, const wire::Pulled& pulled) {
  const auto slot = std::static_pointer_cast<Slot>(from.take_received().memory);
  if (!slot || pulled.worker != member_) return std::shared_ptr<IncomingParameters>{};
  Outcome usable = Done{};
  if (!slot->encoded.empty()) usable = apply_change(pulled, slot->encoded);
  if (usable) usable = mark_arrived(pulled, *slot->incoming);
  if (!usable) return peer_broken(fmt::format("a slice of {} bits cannot be used: {}", pulled.bits, usable.error().message));
  return slot->incoming;
}

std::shared_ptr<IncomingParameters> ParameterReceiver::accept_in_place(const wire::Pulled& pulled, std::span<const std::byte> payload,
                                                                       const transport::BorrowedMemory& borrow) {
  if (layout_.servers != 1 || pulled.worker != member_) return nullptr;
  const store::Slice& slice = layout_[pulled.slice];
  const std::uint8_t bits = bits_of(pulled);
  if (bits != fp32_bits && !is_expected_bf16(pulled)) return nullptr;
  if (payload.size() != codec::encoded_bytes(bits, slice.count)) return nullptr;
  const float* flat = Buffer::flat_begin(payload, slice.offset);
  auto& incoming = incoming_[{pulled.worker, pulled.step}];
  if (!incoming) incoming = std::make_shared<IncomingParameters>(layout_, std::make_shared<Buffer>(flat, layout_.values));
  if (!incoming->buffer().borrowed() || incoming->buffer().floats().data() != flat) return nullptr;
  incoming->buffer().add(borrow);
  return mark_arrived(pulled, *incoming) ? incoming : nullptr;
}

Outcome ParameterReceiver::mark_arrived(const wire::Pulled& pulled, IncomingParameters& incoming) const {
  const std::uint8_t bits = bits_of(pulled);
  if (bits == fp32_bits || !options_.keeps_values) {
    incoming.arrived(pulled.slice);
  } else if (pulled.rounded) {
    incoming.arrived(pulled.slice, bits);
  } else {
    const auto before = previous({pulled.worker, pulled.step});
    if (!before || !before->has(pulled.slice)) return peer_broken(no_base);
    incoming.arrived(pulled.slice, bits, before);
  }
  return Done{};
}

/// Slices of one id arrive in order, so the values that the change is added to are complete.
Outcome ParameterReceiver::apply_change(const wire::Pulled& pulled, std::span<const std::byte> bytes) const {
  const Key key{pulled.worker, pulled.step};
  const auto now = incoming_.find(key);
  if (now == incoming_.end()) return peer_broken("its step is over");
  const auto before = previous(key);
  if (!before) return peer_broken(no_base);
  const store::Slice& slice = layout_[pulled.slice];
  const auto values = [&](IncomingParameters& incoming) { return incoming.buffer().floats().subspan(slice.offset, slice.count); };
  return store::apply_change(slice, pulled.bits, bytes, values(*before), values(*now->second));
}

std::shared_ptr<IncomingParameters> ParameterReceiver::find(WorkerId worker, Step step) const {
  const auto found = incoming_.find({worker, step});
  return found == incoming_.end() ? nullptr : found->second;
}

/// Of the step before this one, for the same member.
std::shared_ptr<IncomingParameters> ParameterReceiver::previous(const Key& key) const {
  const auto now = incoming_.lower_bound(key);
  if (now == incoming_.begin() || std::prev(now)->first.first != key.first) return nullptr;
  return std::prev(now)->second;
}

void ParameterReceiver::drop_before(WorkerId worker, Step step) {
  auto end = incoming_.find({worker, step});
  if (end == incoming_.end()) return;
  if (end != incoming_.begin() && !end->second->complete()) --end;
  incoming_.erase(incoming_.begin(), end);
}

}  // namespace motley::runtime
