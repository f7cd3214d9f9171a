#include "runtime/activation_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codec/magnitude.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t most_reserved = std::uint64_t{1} << 26U;  // values, before any of them has arrived

}  // namespace

void ActivationExchange::send(std::uint64_t micro) {
  auto made = made_.extract(micro);
  check(!made.empty(), "what is sent was computed");
  const auto activation = std::make_shared<const Activation>(std::move(made.mapped()));
  const std::span values(activation->values);
  if (receives_gradients()) sent_[micro] = values.size();
  if (peer_ == nullptr) return;
  const std::size_t largest = std::max<std::size_t>(1, options_.slice_bytes / sizeof(float));
  const std::size_t count = std::clamp<std::size_t>((values.size() + options_.slices - 1) / options_.slices, 1, largest);
  for (std::size_t at = 0; at < values.size(); at += count)
    peer_->send_payload({.head = wire::ActivationSlice{options_.generation, micro, !receives_gradients(), at, activation->shape},
                         .payload = std::as_bytes(values.subspan(at, std::min(count, values.size() - at))),
                         .priority = static_cast<std::uint32_t>(micro)},
                        activation);
}

wire::Objection ActivationExchange::objection(const PeerConnection& from, const wire::ActivationSlice& slice) const {
  const bool known = peer_ == &from;
  if (known && slice.generation < options_.generation) return {};
  const std::string what =
      fmt::format("{} of micro-batch {} of assignment {}", slice.back ? "a gradient" : "an output", slice.micro, slice.generation);
  if (!known || slice.generation != options_.generation) return fmt::format("it sends {} and is not the stage for that", what);
  const auto found = incoming_.find(slice.micro);
  const std::uint64_t offset = found != incoming_.end() ? found->second.activation->values.size() : 0;
  if (slice.micro != next_ || slice.offset != offset || (offset > 0 && slice.shape != found->second.activation->shape))
    return fmt::format("it sends {} at {}, expected micro-batch {} at {}", what, slice.offset, next_, offset);
  if (offset == 0 && incoming_.size() > options_.most_waiting) return fmt::format("it sends {}, though {} wait", what, incoming_.size());
  if (!receives_gradients()) return {};
  const auto sent = sent_.find(slice.micro);
  if (sent == sent_.end() || sent->second != wire::values_of(slice.shape))
    return fmt::format("it sends {}, which is not the gradient of the output that was sent", what);
  return {};
}

std::span<std::byte> ActivationExchange::receive_buffer(const wire::ActivationSlice& slice, std::size_t bytes) {
  if (bytes % sizeof(float) != 0) return {};
  const std::size_t count = bytes / sizeof(float);
  if (slice.generation != options_.generation) return peer_->discard(bytes);
  auto& incoming = incoming_[slice.micro];
  if (!incoming.activation) {
    incoming.activation = std::make_shared<Activation>();
    incoming.activation->shape = slice.shape;
    incoming.missing = wire::values_of(slice.shape);
    incoming.activation->values.reserve(std::min(incoming.missing, most_reserved));
  }
  if (count > incoming.missing) return {};
  incoming.activation->values.resize(slice.offset + count);  // as many as really arrive
  return peer_->receive_into(std::as_writable_bytes(std::span(incoming.activation->values).subspan(slice.offset)), incoming.activation);
}

std::optional<ActivationExchange::Progress> ActivationExchange::received(PeerConnection& from, const wire::ActivationSlice& slice) {
  const PeerConnection::Received payload = from.take_received();
  const auto found = incoming_.find(slice.micro);
  if (!payload.memory || slice.generation != options_.generation || found == incoming_.end() || payload.memory != found->second.activation)
    return std::nullopt;
  const std::span<const float> values = std::span<const float>(found->second.activation->values).subspan(slice.offset);
  found->second.missing -= values.size();
  const Progress progress{codec::all_finite(values), found->second.missing == 0};
  if (!progress.complete) return progress;
  ++next_;
  sent_.erase(slice.micro);
  return progress;
}

std::vector<std::uint64_t> ActivationExchange::complete() const {
  std::vector<std::uint64_t> all;
  for (const auto& [micro, incoming] : incoming_)
    if (incoming.missing == 0) all.push_back(micro);
  return all;
}

Activation ActivationExchange::take(std::uint64_t micro) {
  auto found = incoming_.extract(micro);
  return found.empty() ? Activation{} : std::move(*found.mapped().activation);
}

}  // namespace motley::runtime
