#include "wire/frame.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/core/type_name.hpp>
#include <boost/mp11.hpp>
#include <string>

#include "base/check.h"
#include "wire/encode.h"

namespace motley::wire {
namespace {

struct Header {
  std::uint32_t magic{};
  std::uint16_t version{};
  std::uint16_t kind{};
  std::uint32_t length{};  // of the body
};
BOOST_DESCRIBE_STRUCT(Header, (), (magic, version, kind, length))

constexpr std::uint32_t magic = 0x594C544D;  // "MTLY" when little-endian
constexpr std::size_t header_bytes = 12;
constexpr std::size_t crc_bytes = 4;
constexpr std::size_t kinds = std::variant_size_v<Message>;

template <class T>
std::string_view struct_name() {
  static const std::string full = boost::core::type_name<T>();
  return std::string_view(full).substr(full.rfind(':') + 1);
}

std::size_t body_bytes(const Message& message) {
  return std::visit([](const auto& x) { return written_bytes(x); }, message);
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// For bytes of sufficient size.
template <class T>
T read_known(std::span<const std::byte> bytes) {
  Reader in(bytes);
  T x{};
  const bool good = read(in, x);
  check(good, "the bytes of a fixed part of a frame are present");
  return x;
}

Outcome check_header(const Header& header, const Limits& limits) {
  if (header.magic != magic)
    return peer_broken(
        fmt::format("a frame begins with {:#010x}, expected {:#010x}: the peer does not speak Motley, or the stream is out of step",
                    header.magic, magic));
  if (header.version != version)
    return peer_broken(fmt::format("a frame of wire version {}, expected {}: run the same Motley everywhere", header.version, version));
  if (header.length > limits.body_bytes)
    return peer_broken(fmt::format("a frame claims a body of {} bytes, at most {} are allowed", header.length, limits.body_bytes));
  return Done{};
}

template <class T>
Result<Message> parse_as(std::span<const std::byte> body) {
  Reader in(body);
  T message{};
  if (!read(in, message)) return peer_broken(fmt::format("a garbled {}: {}", struct_name<T>(), in.problem()));
  if (in.left() > 0) return peer_broken(fmt::format("a garbled {}: {} bytes too many", struct_name<T>(), in.left()));
  return Message{std::move(message)};
}

Result<Message> parse_body(std::uint16_t kind, std::span<const std::byte> body) {
  if (kind >= kinds) return peer_broken(fmt::format("a message of unknown kind {}, the last known is {}", kind, kinds - 1));
  return boost::mp11::mp_with_index<kinds>(kind, [&](auto index) { return parse_as<std::variant_alternative_t<index, Message>>(body); });
}

}  // namespace

void append(const Message& message, Bytes& out) {
  const std::size_t start = out.size(), length = body_bytes(message);
  check(length <= Limits{}.body_bytes, "a message fits the limits of a frame");
  out.reserve(start + header_bytes + length + crc_bytes);
  Appender to{out};
  write(to, Header{magic, version, static_cast<std::uint16_t>(message.index()), static_cast<std::uint32_t>(length)});
  std::visit([&](const auto& x) { write(to, x); }, message);
  write(to, checksum(std::span(out).subspan(start)));
}

Result<Parsed> parse(std::span<const std::byte> bytes, const Limits& limits) {
  if (bytes.size() < header_bytes) return Parsed{Incomplete{header_bytes + crc_bytes - bytes.size()}};
  const auto header = read_known<Header>(bytes);
  if (const Outcome good = check_header(header, limits); !good.ok()) return good.error();

  const std::size_t covered = header_bytes + header.length, whole = covered + crc_bytes;
  if (bytes.size() < whole) return Parsed{Incomplete{whole - bytes.size()}};
  const auto claimed = read_known<std::uint32_t>(bytes.subspan(covered));
  const std::uint32_t found = checksum(bytes.first(covered));
  if (found != claimed) return peer_broken(fmt::format("a frame arrived damaged: checksum {:#010x}, expected {:#010x}", found, claimed));

  Result<Message> message = parse_body(header.kind, bytes.subspan(header_bytes, header.length));
  if (!message.ok()) return message.error();
  return Parsed{Complete{std::move(message).value(), whole}};
}

std::size_t encoded_bytes(const Message& message) { return header_bytes + body_bytes(message) + crc_bytes; }

std::string_view name_of(const Message& message) {
  return std::visit([]<class T>(const T&) { return struct_name<T>(); }, message);
}

}  // namespace motley::wire
