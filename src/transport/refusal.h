// The error text for a slice whose receive buffer has another size.
#pragma once
#include <cstddef>
#include <string>

#include "wire/message.h"

namespace motley::transport {

[[nodiscard]] std::string refusal_of(const wire::Message& head, std::size_t payload_bytes, const std::string& peer,
                                     std::size_t buffer_bytes);

}  // namespace motley::transport
