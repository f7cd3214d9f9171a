// Unguessable numbers: a peer that repeats one was sent it.
#pragma once
#include <bit>
#include <cstdint>

#include "transport/proof.h"

namespace motley::runtime {

inline std::uint64_t random_key() { return std::bit_cast<std::uint64_t>(transport::random_bytes<sizeof(std::uint64_t)>()); }

}  // namespace motley::runtime
