// Sends a server's state between chief and server: slices of values and of the optimizer's moments.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "base/ids.h"
#include "runtime/shard_host.h"
#include "store/layout.h"
#include "wire/message.h"

namespace motley::runtime {

/// Encoded size of all slices of `server` with so many bits per value.
[[nodiscard]] std::uint64_t encoded_bytes(const store::Layout& layout, ServerId server, std::uint8_t bits);

/// The number of pieces that send_state() makes.
[[nodiscard]] std::uint64_t pieces_of(const store::Layout& layout, ServerId server, bool first, bool second);

/// Calls `send` with each slice of `server`: its values, then its first and second moments if there are any. Statistics have no moments.
using SendStateChunk = std::function<void(const wire::StateChunk& head, std::span<const std::byte> payload)>;
void send_state(const store::Layout& layout, ServerId server, Version version, std::span<const float> values, const store::Moments* moments,
                const SendStateChunk& send);

/// Where the payload of `head` belongs; empty if there is no such slice or the size is wrong. Allocates moments with their first piece.
std::span<std::byte> place(const store::Layout& layout, const wire::StateChunk& head, std::size_t bytes, std::span<float> values,
                           std::optional<store::Moments>& moments);

}  // namespace motley::runtime
