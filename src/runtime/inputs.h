// Recording and replay of a chief machine: every input with its time, and after each a fingerprint of the machine's actions. Replay feeds
// the inputs to a new machine and finds the first one whose actions differ.
//
//   recording := record* closed, without which it is torn: its process was killed, or could not write
//   record := kind:u8 now:i64 | received: role:u8 id:u32 frame (wire/frame.h) | lost: worker:u32 | lost pending: connection:u32
//             | driver paused: time:i64 | fingerprint:u64     numbers little-endian
//             kind 0 received, 1 lost, 2 lost pending, 3 tick, 4 interrupted, 6 driver paused, 7 model not finite; fingerprint: FNV-1a of
//             all actions of the machine
//   closed := kind:u8 now:i64 with kind 5: the machine received nothing more
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

/// Of all actions, field by field; messages as frames.
[[nodiscard]] std::uint64_t fingerprint(const protocol::ChiefActions& actions);

class Recorder {
 public:
  explicit Recorder(std::function<void(std::span<const std::byte>)> sink) : sink_(std::move(sink)) {}
  void stepped(Instant now, const protocol::ChiefEvent& event, const protocol::ChiefActions& actions);
  /// The machine receives nothing more.
  void closed(Instant now);

 private:
  std::function<void(std::span<const std::byte>)> sink_;
  std::vector<std::byte> record_;  // scratch
};

struct Replayed {
  std::uint64_t inputs = 0;
  std::optional<std::uint64_t> first_difference;  // the number of the input whose actions differ
  std::string torn;                               // why the recording ends before its process did; empty: it is whole
  bool damaged = false;                           // it is torn by bytes that are no record; otherwise it ends too early
};

/// Feeds recorded inputs to `chief`, up to the end of the recording or to where it is torn.
Replayed replay(std::span<const std::byte> records, protocol::Chief& chief);

}  // namespace motley::runtime
