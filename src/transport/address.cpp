#include "transport/address.h"

#include <fmt/format.h>

#include <charconv>

#include "base/match.h"

namespace motley::transport {
namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr std::size_t longest_path = 107;  // sockaddr_un holds 108 with the final zero

Error bad(std::string_view text, std::string_view why) {
  return bad_input(fmt::format("the address \"{}\" {}; expected host:port, [IPv6]:port or unix:PATH, such as 127.0.0.1:7000", text, why));
}

Result<std::uint16_t> parse_port(std::string_view text, std::string_view digits) {
  std::uint16_t port = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, port);
  if (error != std::errc{} || stopped != end) return bad(text, fmt::format("has the port \"{}\", not a number from 0 to 65535", digits));
  return port;
}

Result<Address> parse_unix(std::string_view text) {
  const std::string_view path = text.substr(unix_prefix.size());
  if (path.empty()) return bad(text, "names no path");
  if (path.size() > longest_path)
    return bad(text, fmt::format("has a path of {} bytes, at most {} are allowed", path.size(), longest_path));
  if (path.find('\0') != std::string_view::npos) return bad(text, "has a zero byte in its path");
  return Address{UnixAddress{std::string(path)}};
}

Result<Address> make_tcp(std::string_view text, std::string_view host, std::string_view digits) {
  if (host.empty()) return bad(text, "names no host");
  if (host.find_first_of(" /[]") != std::string_view::npos) return bad(text, fmt::format("has the host \"{}\"", host));
  const Result<std::uint16_t> port = parse_port(text, digits);
  if (!port.ok()) return port.error();
  return Address{TcpAddress{std::string(host), *port}};
}

Result<Address> parse_bracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return bad(text, "opens a bracket and does not close it");
  if (text.substr(close + 1, 1) != ":") return bad(text, "names no port");
  return make_tcp(text, text.substr(1, close - 1), text.substr(close + 2));
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(unix_prefix)) return parse_unix(text);
  if (text.starts_with('[')) return parse_bracketed(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad(text, "names no port");
  if (text.find(':') != colon) return bad(text, "has several colons: write an IPv6 number in brackets");
  return make_tcp(text, text.substr(0, colon), text.substr(colon + 1));
}

std::string to_text(const Address& address) {
  return std::visit(match{[](const TcpAddress& tcp) {
                            const bool brackets = tcp.host.find(':') != std::string::npos;
                            return fmt::format(fmt::runtime(brackets ? "[{}]:{}" : "{}:{}"), tcp.host, tcp.port);
                          },
                          [](const UnixAddress& local) { return std::string(unix_prefix) + local.path; }},
                    address);
}

}  // namespace motley::transport
