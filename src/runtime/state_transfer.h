// What a server holds, on its way between chief and server: slices of values and of the optimizer's moments.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "base/ids.h"
#include "runtime/shard_host.h"
#include "store/layout.h"
#include "wire/message.h"

namespace motley::runtime {

/// Bytes of all slices of `server` with so many bits a value.
[[nodiscard]] std::uint64_t encoded_bytes(const store::Layout& layout, ServerId server, std::uint8_t bits);

/// How many pieces send_state() makes.
[[nodiscard]] std::uint64_t pieces_of(const store::Layout& layout, ServerId server, bool first, bool second);

/// Calls `send` with each slice of `server`: values, then first, then second moments where there are any. Statistics have no moments.
using SendStateChunk = std::function<void(const wire::StateChunk& head, std::span<const std::byte> payload)>;
void send_state(const store::Layout& layout, ServerId server, Version version, std::span<const float> values, const store::Moments* moments,
                const SendStateChunk& send);

/// Where the payload of `head` goes; empty when there is no such place or the size is wrong. Makes room for moments when they first come.
std::span<std::byte> place(const store::Layout& layout, const wire::StateChunk& head, std::size_t bytes, std::span<float> values,
                           std::optional<store::Moments>& moments);

}  // namespace motley::runtime
