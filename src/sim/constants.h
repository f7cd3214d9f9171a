// Constants of the simulator that were chosen and not measured or given by a job.
#pragma once
#include <cstdint>

namespace motley::sim {

/// Bytes that a sender's egress gives one receiver before its next receiver has a turn. Far smaller: small slices wait for as many turns as
/// they are; far larger: receivers are served one after the other.
inline constexpr std::uint64_t turn_bytes = 64 * 1024;

}  // namespace motley::sim
