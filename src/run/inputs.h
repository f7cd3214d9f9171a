// What a chief machine heard and when, so that a real run can be lived again: every input, and after each a fingerprint of the answers.
// Replay feeds the inputs to a fresh machine and finds the first answer that differs.
//
//   record := kind:u8 now:i64 | received: role:u8 id:u32 frame (wire/frame.h) | lost: worker:u32 | lost guest: connection:u32 | unattended:
//   time:i64 | answers:u64 numbers little-endian
//             kind 0 received, 1 lost, 2 lost guest, 3 tick, 4 interrupted, 5 unattended; answers: FNV-1a of all that the machine answered
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "protocol/chief.h"

namespace motley::run {

/// Of all answers, field by field; frames for what is sent.
[[nodiscard]] std::uint64_t fingerprint(const protocol::ChiefActions& actions);

class Recorder {
 public:
  explicit Recorder(std::function<void(std::span<const std::byte>)> sink) : sink_(std::move(sink)) {}
  void stepped(Instant now, const protocol::ChiefEvent& event, const protocol::ChiefActions& actions);

 private:
  std::function<void(std::span<const std::byte>)> sink_;
  std::vector<std::byte> record_;  // scratch
};

struct Replayed {
  std::uint64_t inputs = 0;
  std::optional<std::uint64_t> first_difference;  // the number of the input whose answers differ
  bool cut_short = false;                         // the file ends within a record, as when the process was killed; what is before it counts
};

/// Feeds every recorded input to `chief`. Fails on bytes that are no record.
Result<Replayed> replay(std::span<const std::byte> records, protocol::Chief& chief);

}  // namespace motley::run
