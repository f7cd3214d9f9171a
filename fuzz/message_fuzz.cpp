// The body of every kind of message, without a frame: the first byte chooses the kind, the rest is the body. Reading, writing and reading
// again gives the same bytes.
#include <boost/mp11.hpp>

#include "fuzzing.h"
#include "wire/encode.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of two functions

namespace {

constexpr std::size_t kinds = std::variant_size_v<wire::Message>;
constexpr std::size_t head_bytes = 12;

template <class T>
void read_write_read(fuzz::Span body) {
  wire::Reader in(body);
  T message{};
  if (!wire::read(in, message)) return check(!in.problem().empty(), "a refusal has a reason");
  const fuzz::Span taken = body.first(body.size() - in.left());
  check(wire::written_bytes(message) == taken.size(), "written_bytes() is the size of the body");
  wire::Bytes frame;
  wire::append(message, frame);
  check(fuzz::same(fuzz::Span(frame).subspan(head_bytes, taken.size()), taken), "a message has one encoding only");

  const auto parsed = wire::parse(frame);
  check(parsed.ok() && std::holds_alternative<wire::Complete>(*parsed), "our own frame is valid");
  const auto& complete = std::get<wire::Complete>(*parsed);
  check(std::holds_alternative<T>(complete.message), "a message keeps its kind");
  wire::Bytes again;
  wire::append(complete.message, again);
  check(again == frame, "writing the parsed message gives the same frame");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > wire::Limits{}.body_bytes) return 0;
  boost::mp11::mp_with_index<kinds>(data[0] % kinds, [&](auto kind) {
    read_write_read<std::variant_alternative_t<kind, wire::Message>>(fuzz::bytes_of(data + 1, size - 1));
  });
  return 0;
}
