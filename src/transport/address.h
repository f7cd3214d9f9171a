// Where a process listens, as text and as a value: "127.0.0.1:7000", "[::1]:7000", "chief.local:7000", "unix:/run/motley.sock".
// Names are not looked up here.
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

/// Refuses, naming what is wrong: no port, a port beyond 65535, an open bracket, a bare IPv6 number, no host, no path, a path too long.
Result<Address> parse_address(std::string_view text);

/// What parse_address() reads back as the same.
[[nodiscard]] std::string to_text(const Address& address);

}  // namespace motley::transport
