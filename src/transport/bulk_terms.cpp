#include "transport/bulk_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "transport/lendable.h"
#include "transport/proof.h"
#include "transport/segment.h"
#include "transport/shared_bulk.h"
#include "transport/stream_bulk.h"
#include "wire/encode.h"

namespace motley::transport {
namespace {

using Mark = std::array<std::byte, 16>;
constexpr std::size_t length_bytes = 2, ring_width = 4;
constexpr std::size_t smallest_ring_bytes = 4 << 10, largest_ring_bytes = 1 << 30;

/// What we offer: nothing without memory.
struct OurOffer {
  std::optional<SharedSegment> segment;
  std::string why_not;  // without one
  wire::Bytes bytes;
};

struct TheirOffer {
  std::size_t ring_bytes{};
  Mark mark{};
  wire::Bytes key;  // empty: nothing is offered
};

OurOffer make_offer(const Options& options) {
  OurOffer offer;
  if (options.bulk != Bulk::tcp) {
    Result<SharedSegment> made = make_segment(options.ring_bytes);
    if (made.ok())
      offer.segment = std::move(*made);
    else
      offer.why_not = made.error().message;
  }
  wire::Appender to{offer.bytes};
  to.put(offer.segment ? offer.segment->key.size() : 0, length_bytes);
  if (!offer.segment) return offer;
  const auto mark = random_bytes<sizeof(Mark)>();
  std::copy(mark.begin(), mark.end(), offer.segment->memory->bytes().begin());
  to.put(options.ring_bytes, ring_width);
  offer.bytes.insert(offer.bytes.end(), mark.begin(), mark.end());
  offer.bytes.insert(offer.bytes.end(), offer.segment->key.begin(), offer.segment->key.end());
  return offer;
}

Error broken_off(const boost::system::error_code& failed) {
  return peer_broken(fmt::format("the agreement on the bulk lane broke off: {}", failed.message()));
}

std::uint64_t number(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

asio::awaitable<Result<TheirOffer>> read_offer(Stream& stream) {
  std::array<std::byte, length_bytes> length{};
  const auto [failed, count] = co_await asio::async_read(stream, asio::buffer(length), as_values);
  if (failed) co_return broken_off(failed);
  const std::size_t key_bytes = number(length);
  if (key_bytes == 0) co_return TheirOffer{};
  if (key_bytes > longest_segment_key)
    co_return peer_broken(
        fmt::format("the key of the peer's shared memory has {} bytes, at most {} are allowed", key_bytes, longest_segment_key));

  wire::Bytes bytes(ring_width + sizeof(Mark) + key_bytes);
  const auto [broke, read] = co_await asio::async_read(stream, asio::buffer(bytes), as_values);
  if (broke) co_return broken_off(broke);
  TheirOffer offer{.ring_bytes = number(std::span(bytes).first(ring_width)), .key = {}};
  std::copy_n(bytes.begin() + ring_width, sizeof(Mark), offer.mark.begin());
  offer.key.assign(bytes.begin() + ring_width + sizeof(Mark), bytes.end());
  if (offer.ring_bytes < smallest_ring_bytes || offer.ring_bytes > largest_ring_bytes)
    co_return peer_broken(
        fmt::format("the peer shares {} bytes, expected {} to {}", offer.ring_bytes, smallest_ring_bytes, largest_ring_bytes));
  co_return offer;
}

/// The peer's memory, when it is really the peer's: what bears its mark.
Result<std::unique_ptr<Segment>> find(const TheirOffer& offer) {
  Result<std::unique_ptr<Segment>> found = find_segment(offer.key, offer.ring_bytes);
  if (found.ok() && !std::equal(offer.mark.begin(), offer.mark.end(), (*found)->bytes().begin()))
    return peer_broken("what the peer calls its shared memory does not bear its mark");
  return found;
}

/// Whether both have found the other's.
asio::awaitable<Result<bool>> compare_notes(Stream& stream, bool we_found) {
  const std::array<std::byte, 1> ours{we_found ? std::byte{1} : std::byte{0}};
  std::array<std::byte, 1> theirs{};
  const auto [failed, written] = co_await asio::async_write(stream, asio::buffer(ours), as_values);
  if (failed) co_return broken_off(failed);
  const auto [broke, read] = co_await asio::async_read(stream, asio::buffer(theirs), as_values);
  if (broke) co_return broken_off(broke);
  co_return we_found&& theirs[0] == std::byte{1};
}

Result<std::shared_ptr<BulkLane>> on_the_stream(Stream& stream, const Options& options, const std::string& why) {
  if (options.bulk == Bulk::ucx)
    return bad_input(
        fmt::format("--bulk ucx: {}; processes of one host and one user can share memory, others need --bulk tcp or auto", why));
  return std::shared_ptr<BulkLane>(std::make_shared<StreamBulk>(std::move(stream), options.largest_payload_bytes));
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<BulkLane>>> agree_on_bulk(Stream& stream, const Options& options) {
  OurOffer ours = make_offer(options);
  const auto [failed, written] = co_await asio::async_write(stream, asio::buffer(ours.bytes), as_values);
  if (failed) co_return broken_off(failed);
  Result<TheirOffer> theirs = co_await read_offer(stream);
  if (!theirs.ok()) co_return theirs.error();
  if (!ours.segment) co_return on_the_stream(stream, options, ours.why_not);
  if (theirs->key.empty()) co_return on_the_stream(stream, options, "the other side offers no shared memory");

  Result<std::unique_ptr<Segment>> found = find(*theirs);
  const Result<bool> both = co_await compare_notes(stream, found.ok());
  if (!both.ok()) co_return both.error();
  if (!found.ok()) co_return on_the_stream(stream, options, found.error().message);
  if (!*both) co_return on_the_stream(stream, options, "the other side cannot map our memory");
  lendable().want();
  Rings rings{std::move(ours.segment->memory), std::move(*found)};
  co_return std::make_shared<SharedBulk>(std::move(stream), std::move(rings), options.largest_payload_bytes);
}

}  // namespace motley::transport
