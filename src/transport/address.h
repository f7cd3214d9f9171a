// The address of a listener, as text and as a value: "127.0.0.1:7000", "[::1]:7000", "chief.local:7000", "unix:/run/motley.sock".
// Host names are not resolved here.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace motley::transport {

struct TcpAddress {
  std::string host;      // a name or a number, without the brackets of IPv6
  std::uint16_t port{};  // 0 when listening: any free one
  auto operator<=>(const TcpAddress&) const = default;
};
struct UnixAddress {
  std::string path;
  auto operator<=>(const UnixAddress&) const = default;
};
using Address = std::variant<TcpAddress, UnixAddress>;

/// Refuses, with the reason: no port, a port beyond 65535, an open bracket, an IPv6 number without brackets, no host, no path, a long path.
Result<Address> parse_address(std::string_view text);

/// parse_address() of the text gives the same address.
[[nodiscard]] std::string to_text(const Address& address);

}  // namespace motley::transport
