#include "transport/refusal.h"

#include <fmt/format.h>

#include "wire/frame.h"

namespace motley::transport {

std::string refusal_of(const wire::Message& head, std::size_t payload_bytes, const std::string& peer, std::size_t buffer_bytes) {
  return fmt::format("a {} of {} bytes from {} was refused: its receive buffer has {} bytes", wire::name_of(head), payload_bytes, peer,
                     buffer_bytes);
}

}  // namespace motley::transport
