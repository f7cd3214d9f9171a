// Which messages each peer may send, by what it is to the process that receives them, and on which lane; and what values their fields may
// have, whoever sends them. Every receiver asks here first, before a message reaches a state machine or a buffer. Whether a peer speaks for
// itself is for the receiver to check: only it knows the connection.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace motley::wire {

/// What the sender is to the receiver.
enum class Sender : std::uint8_t {
  unidentified,    // to a chief or a pipeline's chief: it has not sent JoinRequest yet
  worker,          // to a chief
  server,          // to a chief: its JoinRequest said so
  servers_worker,  // to a server
  servers_chief,   // to a server
  workers_chief,   // to a worker
  workers_server,  // to a worker
  stage,           // to a pipeline's chief
  stages_chief,    // to a stage: the pipeline's chief
  neighbour        // to a stage
};

enum class Lane : std::uint8_t { control, bulk };

/// Why the message must be refused and its sender's connection closed; none: it may be looked at.
using Objection = std::optional<std::string>;

/// The table of who may send what, then the values.
[[nodiscard]] Objection objection(Sender sender, Lane lane, const Message& message);

/// Whether the table lets `sender` send messages of this kind (their place in Message) on this lane.
[[nodiscard]] bool permits(Sender sender, Lane lane, std::size_t kind);
/// "a chief to a worker".
[[nodiscard]] std::string_view name_of(Sender sender);

/// The values alone: durations, numbers, texts and counts that no correct peer sends.
[[nodiscard]] Objection objection_to_values(const Message& message);

/// Of an activation: the product of its extents, after objection_to_values() had none.
[[nodiscard]] std::uint64_t values_of(const std::vector<std::int64_t>& shape);

/// At most 64 printable ASCII characters, as the name of a node is everywhere.
inline constexpr std::size_t longest_name = 64;
[[nodiscard]] bool is_name(std::string_view text);

/// Text from another process, fit for a log or a terminal: other bytes than printable ASCII as \xNN, cut after `most` characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 256);

}  // namespace motley::wire
