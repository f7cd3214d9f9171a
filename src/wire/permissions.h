// Which messages each peer may send, by its role relative to the receiving process and by lane, and the permitted values of their fields.
// Every receiver checks this first, before a message reaches a state machine or a buffer. Whether a peer uses its own ids is checked by the
// receiver, which knows the connection.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace motley::wire {

/// The role of the sender relative to the receiver.
enum class Sender : std::uint8_t {
  unidentified,    // to a chief or pipeline chief: it has not sent JoinRequest yet
  worker,          // to a chief
  server,          // to a chief: its JoinRequest said so
  servers_worker,  // to a server
  servers_chief,   // to a server
  workers_chief,   // to a worker
  workers_server,  // to a worker
  stage,           // to a pipeline chief
  stages_chief,    // to a stage: the pipeline chief
  neighbour        // to a stage
};

enum class Lane : std::uint8_t { control, bulk };

/// The reason to refuse the message and close the connection; none: it may be processed.
using Objection = std::optional<std::string>;

/// Checks the table of senders, then the values.
[[nodiscard]] Objection objection(Sender sender, Lane lane, const Message& message);

/// Whether the table lets `sender` send messages of this kind (their place in Message) on this lane.
[[nodiscard]] bool permits(Sender sender, Lane lane, std::size_t kind);
/// "a chief to a worker".
[[nodiscard]] std::string_view name_of(Sender sender);

/// The values alone: durations, numbers, texts and counts that no correct peer sends.
[[nodiscard]] Objection objection_to_values(const Message& message);

/// The number of values of an activation: the product of its shape, which objection_to_values() has checked.
[[nodiscard]] std::uint64_t values_of(const std::vector<std::int64_t>& shape);

/// At most 64 printable ASCII characters, the limit of node names.
inline constexpr std::size_t longest_name = 64;
[[nodiscard]] bool is_name(std::string_view text);

/// Another process's text for a log or terminal: bytes other than printable ASCII as \xNN, cut after `most` characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 256);

}  // namespace motley::wire
