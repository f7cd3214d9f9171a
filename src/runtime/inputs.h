// What a chief machine heard and when, so that a real run can be lived again: every input, and after each a fingerprint of the answers.
// Replay feeds the inputs to a fresh machine and finds the first answer that differs.
//
//   recording := record* closed, without which it is torn: its process was killed, or could not write
//   record := kind:u8 now:i64 | received: role:u8 id:u32 frame (wire/frame.h) | lost: worker:u32 | lost guest: connection:u32
//             | unattended: time:i64 | answers:u64     numbers little-endian
//             kind 0 received, 1 lost, 2 lost guest, 3 tick, 4 interrupted, 6 unattended, 7 model not finite; answers: FNV-1a of all that
//             the machine answered
//   closed := kind:u8 now:i64 with kind 5: nothing more was heard
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/chief.h"

namespace motley::runtime {

/// Of all answers, field by field; frames for what is sent.
[[nodiscard]] std::uint64_t fingerprint(const protocol::ChiefActions& actions);

class Recorder {
 public:
  explicit Recorder(std::function<void(std::span<const std::byte>)> sink) : sink_(std::move(sink)) {}
  void stepped(Instant now, const protocol::ChiefEvent& event, const protocol::ChiefActions& actions);
  /// The machine will hear nothing more.
  void closed(Instant now);

 private:
  std::function<void(std::span<const std::byte>)> sink_;
  std::vector<std::byte> record_;  // scratch
};

struct Replayed {
  std::uint64_t inputs = 0;
  std::optional<std::uint64_t> first_difference;  // the number of the input whose answers differ
  std::string torn;                               // why the recording ends before its life did; empty: it is whole
  bool damaged = false;                           // it is torn by bytes that are no record; otherwise it just ends
};

/// Feeds recorded inputs to `chief`, up to the end of the recording or to where it is torn.
Replayed replay(std::span<const std::byte> records, protocol::Chief& chief);

}  // namespace motley::runtime
