// Trace files: a header that names the version, then one record of fixed size per event.
//
//   file   := "motley trace v2\n" record*                                                        numbers little-endian
//   record := at:i64 (ns) kind:u8 field* 0*                                                      56 bytes, padded with zeros
//
// `kind` is the index of the event's type in trace::EventData; its fields follow in the order of their description in trace/event.h: ids
// as u32, counters as u64, durations as i64 ns, bool as u8. Version 1 had no header and one flat record of 66 bytes for every kind.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace motley::trace {

inline constexpr std::string_view file_header = "motley trace v2\n";
inline constexpr std::size_t record_bytes = 56;

void write_record(const Event& event, std::span<std::byte, record_bytes> out);
/// Fails on an unknown kind.
Result<Event> read_record(std::span<const std::byte, record_bytes> bytes);

}  // namespace motley::trace
