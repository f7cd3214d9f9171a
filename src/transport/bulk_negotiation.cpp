#include "transport/bulk_negotiation.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <vector>

#include "transport/constants.h"
#include "transport/descriptor_passing.h"
#include "transport/segment.h"
#include "transport/shared_arena.h"
#include "transport/shared_bulk.h"
#include "transport/stream_bulk.h"
#include "wire/encode.h"

namespace motley::transport {
namespace {

constexpr std::size_t length_bytes = 2, number_bytes = 4, body_bytes = 2 * number_bytes;

struct OurOffer {
  std::optional<SharedSegment> segment;  // none: nothing is offered
  pid_t peer{};                          // with a segment: the process whose offer is accepted
  std::string why_not;                   // without one
};

struct TheirOffer {
  pid_t process{};
  std::size_t ring_bytes{};  // 0: nothing is offered
  Descriptor file;
};

OurOffer make_offer(Stream& stream, const Options& options) {
  OurOffer offer;
  if (options.bulk == Bulk::tcp) return offer;
  const Result<pid_t> peer = process_of_our_user(stream);
  Result<SharedSegment> made = peer.ok() ? make_segment(options.ring_bytes) : peer.error();
  if (made.ok()) {
    offer.segment = std::move(*made);
    offer.peer = *peer;
  } else {
    offer.why_not = made.error().message;
  }
  return offer;
}

Error broken_off(const boost::system::error_code& failed) {
  return peer_broken(fmt::format("the negotiation of the bulk lane broke off: {}", failed.message()));
}

asio::awaitable<Outcome> send_offer(Stream& stream, const OurOffer& ours, const Options& options) {
  wire::Bytes bytes;
  std::vector<AttachedFile> files;
  wire::Appender to{bytes};
  to.put(ours.segment ? body_bytes : 0, length_bytes);
  if (ours.segment) {
    to.put(static_cast<std::uint64_t>(::getpid()), number_bytes);
    to.put(options.ring_bytes, number_bytes);
    files.push_back({0, ours.segment->file});
  }
  const auto failed = co_await write_with_files(stream, bytes, files);
  if (failed) co_return broken_off(failed);
  co_return Done{};
}

std::uint64_t number(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

asio::awaitable<Outcome> fill(Stream& stream, std::span<std::byte> bytes) {
  const auto [failed, count] = co_await asio::async_read(stream, asio::buffer(bytes.data(), bytes.size()), as_values);
  if (failed) co_return broken_off(failed);
  co_return Done{};
}

/// Also takes the file that comes with the first byte; from a process of our user only.
asio::awaitable<Outcome> fill(Stream& stream, std::span<std::byte> bytes, Descriptor& file) {
  ReadWithFile read = co_await read_some_with_file(stream, bytes);
  if (read.failed) co_return broken_off(read.failed);
  file = std::move(read.file);
  co_return co_await fill(stream, bytes.subspan(read.bytes));
}

asio::awaitable<Result<TheirOffer>> read_offer(Stream& stream, bool with_file) {
  TheirOffer offer;
  std::array<std::byte, length_bytes> length{};
  Outcome begun = Done{};
  if (with_file)
    begun = co_await fill(stream, length, offer.file);
  else
    begun = co_await fill(stream, length);
  if (!begun.ok()) co_return begun.error();
  if (number(length) == 0) co_return TheirOffer{};
  if (number(length) != body_bytes)
    co_return peer_broken(fmt::format("the peer's offer of memory has {} bytes, expected {}", number(length), body_bytes));

  std::array<std::byte, body_bytes> body{};
  const Outcome read = co_await fill(stream, body);
  if (!read.ok()) co_return read.error();
  offer.process = static_cast<pid_t>(number(std::span(body).first(number_bytes)));
  offer.ring_bytes = number(std::span(body).subspan(number_bytes));
  if (offer.ring_bytes < smallest_ring_bytes || offer.ring_bytes > largest_ring_bytes)
    co_return peer_broken(
        fmt::format("the peer shares {} bytes, expected {} to {}", offer.ring_bytes, smallest_ring_bytes, largest_ring_bytes));
  co_return offer;
}

/// Maps the peer's memory once it is known to be the peer's and safe to read.
Result<std::unique_ptr<Segment>> accept(const TheirOffer& theirs, const OurOffer& ours) {
  if (theirs.process != ours.peer)
    return peer_broken(
        fmt::format("the offered memory claims to be of process {}, but process {} is connected", theirs.process, ours.peer));
  if (theirs.file.number() < 0) return peer_broken("the other side offers memory without its descriptor");
  Result<std::unique_ptr<Segment>> found = map_segment(theirs.file, theirs.ring_bytes);
  if (found.ok() && id_of(theirs.file) == id_of(*ours.segment->file)) return peer_broken("the other side offers our own memory");
  return found;
}

/// Whether both ends have mapped the other's memory.
asio::awaitable<Result<bool>> both_accepted(Stream& stream, bool we_accepted) {
  const std::array<std::byte, 1> ours{we_accepted ? std::byte{1} : std::byte{0}};
  std::array<std::byte, 1> theirs{};
  const auto [failed, written] = co_await asio::async_write(stream, asio::buffer(ours), as_values);
  if (failed) co_return broken_off(failed);
  const Outcome read = co_await fill(stream, theirs);
  if (!read.ok()) co_return read.error();
  co_return we_accepted&& theirs[0] == std::byte{1};
}

Result<std::shared_ptr<BulkLane>> on_the_stream(Stream& stream, const Options& options, const std::string& why) {
  if (options.bulk == Bulk::shared)
    return bad_input(fmt::format("--bulk shared: {}; it needs processes of one user and a unix socket, else use --bulk tcp or auto", why));
  return std::shared_ptr<BulkLane>(std::make_shared<StreamBulk>(std::move(stream), options.largest_payload_bytes));
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<BulkLane>>> negotiate_bulk(Stream& stream, const Options& options) {
  OurOffer ours = make_offer(stream, options);
  const Outcome sent = co_await send_offer(stream, ours, options);
  if (!sent.ok()) co_return sent.error();
  const Result<TheirOffer> theirs = co_await read_offer(stream, ours.segment.has_value());
  if (!theirs.ok()) co_return theirs.error();
  if (!ours.segment) co_return on_the_stream(stream, options, ours.why_not);
  if (theirs->ring_bytes == 0) co_return on_the_stream(stream, options, "the other side offers no shared memory");

  Result<std::unique_ptr<Segment>> accepted = accept(*theirs, ours);
  const Result<bool> both = co_await both_accepted(stream, accepted.ok());
  if (!both.ok()) co_return both.error();
  if (!accepted.ok()) co_return on_the_stream(stream, options, accepted.error().message);
  if (!*both) co_return on_the_stream(stream, options, "the other side cannot map our memory");
  shared_arena().want();
  Rings rings{std::move(ours.segment->memory), std::move(*accepted), id_of(*ours.segment->file)};
  co_return std::make_shared<SharedBulk>(std::move(stream), std::move(rings), options.largest_payload_bytes);
}

}  // namespace motley::transport
